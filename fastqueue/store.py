"""The port: what a store of jobs promises, in prose, clause by clause.

The conformance kit (`fastqueue.testing.StoreContract`) quotes the clause numbers, so a failing check names the
sentence that a store broke. The memory store (`fastqueue.stores.memory`) is the same contract as a program.

Words. A job *waits* when no claim holds it and it has not failed; it is *held* while its claim's time is not up
(`held_until > now`); a waiting job is *due* when `run_at <= now`. A *lane* is the waiting jobs that share a queue,
a kind and what limits them. Every verb takes many at once, takes the moment from its caller and never looks at a
clock, and does all of what it was asked or, when it raises, none of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NamedTuple

from fastqueue.finding import Inspects
from fastqueue.job import Claimed, Lane, Moment, NewJob, Pushed, StoredJob, Which
from fastqueue.joins import Enlisted, Joins
from fastqueue.moves import Moves
from fastqueue.outcome import Settlement

__all__ = [
    "Claim",
    "Count",
    "Enlisted",
    "FailedJobs",
    "Hits",
    "Holds",
    "Joins",
    "Keep",
    "Migrates",
    "RunPushed",
    "Schedules",
    "Store",
    "StoreTime",
    "Throttles",
    "Wakes",
]


class Keep(StrEnum):
    """What a push may ask of a store: each is a column and a clause of the same verbs, with no verb of its own."""

    KEYS = "unique keys"
    LATEST = "moving the waiting job"
    ONE_AT_A_TIME = "one at a time"
    AT_ONCE = "at most n at once"
    CARRIED = "what a job carries"
    QUEUES = "named queues"
    TIMES = "holds of each job's own length"


class Claim(NamedTuple):
    """What a claim took.

    Attributes:
        jobs: The jobs it holds now, in the order in which they are to be started.
        next_due: The earliest moment at which a waiting job that this claim saw comes due, or its kind is held back no
            longer; a hint, None: unknown.
    """

    jobs: list[Claimed]
    next_due: Moment | None = None


class Store(ABC):
    """Keeps jobs from their push until they have run.

    A store says what it `keeps`, and what it can do beyond the verbs here by *faculties*: attributes that are an
    object, or None when the store lacks it. A kind, schedule or transaction that needs what is lacking is refused
    when it is registered.

    Example:
        >>> from fastqueue.stores import store_of
        >>> store_of("memory://").name
        'memory'
    """

    name: ClassVar[str]
    """The store's name in messages: "postgres"."""

    for_workers: ClassVar[bool] = True
    """Whether workers beside a server claim from it; False: a lifespan starts none."""

    keeps: frozenset[Keep] = frozenset()
    schedules: Schedules | None = None
    holds: Holds | None = None
    failed: FailedJobs | None = None
    joins: Joins | None = None
    wakes: Wakes | None = None
    throttles: Throttles | None = None
    time: StoreTime | None = None
    migrates: Migrates | None = None
    inspects: Inspects | None = None
    moves: Moves | None = None

    @abstractmethod
    async def open(self) -> None:
        """Make ready on the running event loop: connections, tables.

        Opening an open store does nothing. Opening on another loop forgets what belonged to the loop before.
        """

    @abstractmethod
    async def close(self) -> None:
        """Give back every connection and thread. Closing a closed store does nothing; it can be opened again."""

    @abstractmethod
    async def push(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        """Keep new jobs, and answer for each in the order given.

        - B1: a job is kept with its kind, payload and run_at as given; it has no attempts and no error.
        - G1: of jobs due at one moment, the one pushed first has the smaller id and is claimed first.
        - U1: with `unique_key`, a job is kept only when none of its kind waits with that key; the answer then is the
          waiting job's id with `new=False`. Of two in one call the first is kept.
        - U4: of several pushes of one key at once, exactly one is new.
        - L1, L3, G4: with `latest` the job that waits takes the push's `run_at`, earlier or later, and nothing else.
        - L2: a held job is not moved, and its key is free.
        - C1, C2, G2: what the job carries and what limits it is kept by a push of any sort; the first push's stays.
        - It tells other processes, where the store has a way (`wakes`), that there is something to look at.
        """

    @abstractmethod
    async def claim(
        self,
        now: Moment,
        *,
        token: int,
        limit: int,
        queues: Sequence[str] | None,
        kinds: Collection[str],
    ) -> Claim:
        """Take up to `limit` due jobs of these kinds, and hold them for this caller.

        - B1, G16: only a job with `run_at <= now`; held until `now` and its own `hold_ms`.
        - B2, B7: never one that is held. A hold is over at exactly `held_until`: the job then waits again, at its old
          place, and the claim that takes it says so (`lost`).
        - B5: never one that failed.
        - B6, D17: by (run_at, id). With `queues` the first named comes before the second, whatever their times; None
          takes every queue as one line. Jobs of other kinds and queues stay as they are.
        - Each claimed job has one attempt more and the call's `token`, which its caller never uses twice.
        - U2: the claim lets the job's unique key go, and tells it.
        - O1..O5, G11: never a job whose (kind, alone_key) a held job has; one of them in one call.
        - A1..A5, G18: never a job with `at_once` while as many of its kind are held, with or without limits of their
          own; the jobs taken by this same call count. Each job is judged by its own number.
        - H2: never a kind held back beyond `now`.
        - One claim equals the walk of the line that a single caller would make; several at once equal some order
          of such walks. It may give fewer than it could only while others are at work on the same jobs.
        """

    @abstractmethod
    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        """Tell how runs ended; answer for each whether its claim still had the job.

        - B2, G9, G10: a late one (other token, or the job is gone, failed or claimed again) answers False, changes
          nothing and never raises. A claim whose time was up but whose job nobody else has claimed may still settle.
        - B3: GONE removes the job.
        - B4: WAITS puts it back, due at `at`, with error, attempts and interruptions as given.
        - B5, U3: FAILED keeps it where no claim finds it, with the moment and the error.
        - U2, G7: none of them takes the unique key again. O4: the alone key stays for life.
        """

    @abstractmethod
    async def give_back(self, jobs: Sequence[Claimed]) -> list[bool]:
        """Undo claims whose jobs were not started; answer for each whether its claim still had it.

        H1, G6: the job waits again as it was: its place, run_at, error, interruptions, one attempt less.
        H3: it takes its unique key again, unless another job waits with it by now. H4: a late one answers False.
        """

    @abstractmethod
    async def renew(self, jobs: Sequence[Claimed], *, now: Moment, until: Moment) -> list[bool]:
        """Hold running jobs for longer: until `until`; answer for each whether it is still held by its claim.

        A hold that is over at `now` is not renewed: others may count on its end already.
        """

    @abstractmethod
    async def prune(self, now: Moment, *, failed_before: Moment) -> int:
        """Forget the jobs that failed before a moment, and all else that is over; answer how many jobs went.

        X3, X4: failed jobs with `failed_at < failed_before`; kinds held back until `now` or earlier; throttles
        whose window is over. In small portions, so that no claim waits for it.
        """

    @abstractmethod
    async def lanes(self) -> list[Lane]:
        """Every lane that has waiting jobs, with the moment its first one is due, in no promised order."""

    @abstractmethod
    async def counts(self, now: Moment) -> list[Count]:
        """How many jobs of each queue and kind wait, are delayed, held and failed. It reads the whole table."""

    @abstractmethod
    async def jobs(
        self,
        *,
        state: str | None = None,
        now: Moment,
        kind: str | None = None,
        queue: str | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[StoredJob]:
        """Jobs as they are kept, by id, those with an id greater than `after`.

        Args:
            state: "waiting", "delayed", "running" or "failed"; None: any.
            now: The moment by which a job is delayed or running.
            kind: Only of this kind; None: any.
            queue: Only of this named queue; None: any.
            after: Only ids greater than this.
            limit: At most this many.
        """


@dataclass(frozen=True, slots=True)
class Count:
    """The jobs of one queue and kind. `oldest` is the least run_at of those waiting; None: none waits."""

    queue: str
    kind: str
    waiting: int
    delayed: int
    running: int
    failed: int
    oldest: Moment | None


class RunPushed(NamedTuple):
    """Whether a schedule's run was pushed, and the moment of the last run that is recorded for it."""

    pushed: bool
    recorded: Moment


class Schedules(ABC):
    """Faculty: each run of a schedule is pushed once, over all instances."""

    @abstractmethod
    async def push_run(self, schedule: str, job: NewJob, *, now: Moment) -> RunPushed:
        """Push the run of a schedule that is due at the job's run_at, unless one due then or later was recorded.

        - S1, S2: a run goes in only when it is later than the recorded one. S3: schedules are apart.
        - S4: of several at once exactly one is pushed. G14: record and job are kept together, or neither.
        - U5, G3: when the job's unique key waits, the run is recorded, no job is added, the waiting one is not moved
          (not by `latest` either); the answer is False.
        """

    @abstractmethod
    async def recorded(self) -> dict[str, Moment]:
        """The moment of the last run recorded of each schedule, by name."""

    @abstractmethod
    async def tell_zone_data(self, version: str, *, now: Moment) -> dict[str, Moment]:
        """Tell that an instance with this version of the time zone data is at work at `now`.

        S5: answers for each version told of when one with it was last said to be at work, over all instances.
        """


class Holds(ABC):
    """Faculty: a kind can be held back, on every instance."""

    @abstractmethod
    async def hold_back(self, job: Claimed, *, until: Moment) -> bool:
        """Give the job back as `Store.give_back` does, and let no claim take its kind until `until`.

        G5: a kind's moment only moves forward. X4, G6: a late call leaves the job, and holds the kind all the same.
        H5: its jobs come due no sooner, also in a claim's `next_due`. Answers whether the claim still had the job.
        """


class FailedJobs(ABC):
    """Faculty: the jobs that failed for good are listed, run again and forgotten."""

    @abstractmethod
    async def page(
        self, which: Which | None = None, *, limit: int = 100, after: StoredJob | None = None
    ) -> list[StoredJob]:
        """Some of the failed jobs, or all.

        F1, G19: the latest failure first, of equal moments the larger id first. F4: only those that are meant by
        `which`. F5: with `after`, those behind it in that order, whether it is still there or not; a page costs the
        same wherever in the list it is, as long as its jobs are the ones meant.
        """

    @abstractmethod
    async def run_again(self, ids: Sequence[int], *, at: Moment) -> list[bool]:
        """Put failed jobs back, due at `at`, with no attempts; answer for each whether it was a failed one.

        F2, G7, G8: error text, carried and limits stay; the unique key is not taken again. F3: others are left alone.
        It tells other processes, as a push does.
        """

    @abstractmethod
    async def forget(self, ids: Sequence[int]) -> list[bool]:
        """Delete failed jobs; answer for each whether it was a failed one."""


class Wakes(ABC):
    """Faculty: a process can be told that another has pushed."""

    up: bool = False
    """Whether notices would arrive just now."""

    @abstractmethod
    async def listen(self, wake: Callable[[], None]) -> None:
        """Call `wake` for each notice, and once after each time the line was down, until cancelled.

        It connects, and connects again after a failure, by itself.
        """

    @abstractmethod
    async def tell(self) -> None:
        """Tell the processes that listen. Errors are swallowed: the poll is the guarantee."""


class Hits(NamedTuple):
    """The tries counted in a window, and the moment it ends."""

    tries: int
    ends: Moment


class Throttles(ABC):
    """Faculty: tries are counted in fixed windows, over all instances."""

    @abstractmethod
    async def hit(self, key: str, *, now: Moment, window_ms: int) -> Hits:
        """Count one try and answer how many there were, in one step.

        T1: a window begins with its first try and ends `window_ms` later whatever comes meanwhile. T2: a try at the
        very end begins a new one. T3: keys are apart. T4: n tries at once give 1..n, each once.
        """

    @abstractmethod
    async def tries(self, key: str, *, now: Moment) -> Hits | None:
        """The running window's count without counting a try; None: no window runs."""

    @abstractmethod
    async def clear(self, key: str) -> None:
        """Forget the key's window."""


class StoreTime(ABC):
    """Faculty: the store has a clock, the same for every instance."""

    @abstractmethod
    async def now(self) -> Moment:
        """The store's clock."""


class Migrates(ABC):
    """Faculty: the store has tables, made and upgraded by numbered migrations."""

    latest: int
    """The number of the last migration this version knows."""

    @abstractmethod
    async def current(self) -> int:
        """The number of the last migration applied; 0: the tables are not there."""

    @abstractmethod
    async def migrate(self) -> list[int]:
        """Apply what is missing, one instance at a time; answer the numbers applied.

        Raises:
            SchemaTooNew: the tables are from a newer version of fastqueue.
        """

    @abstractmethod
    def sql(self, *, since: int = 0) -> str:
        """The migrations after number `since` as SQL text, for people who run their own."""

"""A store in memory: the contract as a program, to be read next to `fastqueue.store`.

Nothing here waits for anything, so each verb is one step for every task of a loop and needs no lock. It keeps jobs
until the process ends: for tests, and for apps whose jobs may be lost with the process.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, merge
from itertools import islice
from typing import TypeAlias

from fastqueue.job import Claimed, Lane, Moment, NewJob, Pushed, StoredJob
from fastqueue.outcome import Ending, Settlement
from fastqueue.store import (
    Claim,
    Count,
    FailedJobs,
    Hits,
    Holds,
    Keep,
    RunPushed,
    Schedules,
    Store,
    Throttles,
)

__all__ = ["MemoryStore"]

_Line: TypeAlias = list[tuple[Moment, int]]
"""The (run_at, id) of a lane's waiting jobs, sorted: the order in which they are claimed."""

_LaneKey: TypeAlias = tuple[str, str, int]
"""Queue, kind and mode."""


@dataclass(slots=True)
class _Row:
    """A job as it is kept: what its push gave, and what has happened to it since."""

    id: int
    given: NewJob
    run_at: Moment
    unique_key: str | None = None
    attempts: int = 0
    interruptions: int = 0
    error: str | None = None
    token: int = 0
    held_until: Moment = 0  # 0: no claim holds it
    failed_at: Moment | None = None

    @property
    def lane(self) -> _LaneKey:
        return self.given.queue, self.given.kind, self.given.mode

    @property
    def place(self) -> tuple[Moment, int]:
        return self.run_at, self.id

    @property
    def alone(self) -> tuple[str, str] | None:
        return None if self.given.alone_key is None else (self.given.kind, self.given.alone_key)

    def claimed(self, unique_key: str | None, *, lost: bool) -> Claimed:
        given = self.given
        return Claimed(
            id=self.id,
            token=self.token,
            kind=given.kind,
            queue=given.queue,
            payload=given.payload,
            run_at=self.run_at,
            held_until=self.held_until,
            hold_ms=given.hold_ms,
            attempts=self.attempts,
            interruptions=self.interruptions,
            options=given.options,
            unique_key=unique_key,
            alone_key=given.alone_key,
            at_once=given.at_once,
            carried=given.carried,
            schedule=given.schedule,
            error=self.error,
            lost=lost,
        )

    def stored(self) -> StoredJob:
        given = self.given
        return StoredJob(
            id=self.id,
            kind=given.kind,
            queue=given.queue,
            payload=given.payload,
            run_ms=self.run_at,
            attempts=self.attempts,
            held_ms=self.held_until or None,
            failed_ms=self.failed_at,
            error=self.error,
            options=given.options,
            unique_key=self.unique_key,
            alone_key=given.alone_key,
            at_once=given.at_once,
            carried_text=given.carried,
            schedule=given.schedule,
        )


class _Kept:
    """Everything that is kept, and how each thing that can happen to a job changes it."""

    def __init__(self) -> None:
        self.rows: dict[int, _Row] = {}
        self.lines: dict[_LaneKey, _Line] = {}
        self.failed: dict[int, _Row] = {}
        self.waiting_keys: dict[tuple[str, str], _Row] = {}
        self.held: Counter[str] = Counter()
        self.held_alone: set[tuple[str, str]] = set()
        self.held_kinds: dict[str, Moment] = {}
        self.runs: dict[str, Moment] = {}
        self.windows: dict[str, Hits] = {}
        self._ends: list[tuple[Moment, int]] = []
        self._last_id = 0

    def push(self, job: NewJob, *, move: bool) -> Pushed:
        waiting = None if job.unique_key is None else self.waiting_keys.get((job.kind, job.unique_key))
        if waiting is not None:
            if move:
                self._leave_line(waiting)
                waiting.run_at = job.run_at
                self._queue_up(waiting)
            return Pushed(waiting.id, new=False)
        self._last_id += 1
        row = self.rows[self._last_id] = _Row(self._last_id, job, job.run_at)
        self._take_key(row, job.unique_key)
        self._queue_up(row)
        return Pushed(row.id, new=True)

    def lapse(self, now: Moment) -> None:
        """Jobs whose hold is over wait again. They keep the token, by which their claim may still settle them."""
        while self._ends and self._ends[0][0] <= now:
            until, id = heappop(self._ends)
            row = self.rows.get(id)
            if row is not None and row.held_until == until:
                self._end_hold(row)
                self._queue_up(row)

    def walk(self, now: Moment, limit: int, queue: str | None, kinds: Collection[str]) -> list[_Row]:
        """The jobs of a queue (None: of all) that a claim of at most `limit` gets, in order, counted as held."""
        free = {kind for kind in kinds if self.held_kinds.get(kind, now) <= now}
        lanes = [line for lane, line in self.lines.items() if lane[1] in free and queue in (None, lane[0])]
        taken: list[_Row] = []
        for _, id in merge(*(self._while_free(line, now) for line in lanes)):
            if len(taken) == limit:
                break
            row = self.rows[id]
            if not self._full(row) and row.alone not in self.held_alone:
                self._count(row)
                taken.append(row)
        return taken

    def next_due(self, now: Moment, queues: Sequence[str] | None, kinds: Collection[str]) -> Moment | None:
        """The earliest moment at which a job of these kinds and queues comes due after `now`."""
        lines = (
            line
            for (queue, kind, _), line in self.lines.items()
            if kind in kinds and (queues is None or queue in queues)
        )
        return min((line[at][0] for line in lines if (at := _due(line, now)) < len(line)), default=None)

    def hold(self, row: _Row, *, token: int, until: Moment) -> Claimed:
        """Let a claim have a job that its walk has counted."""
        self._leave_line(row)
        key, lost = row.unique_key, row.token != 0
        if key is not None:
            del self.waiting_keys[row.given.kind, key]
        row.unique_key, row.token = None, token
        row.attempts += 1
        self._hold_until(row, until)
        return row.claimed(key, lost=lost)

    def renew(self, job: Claimed, *, now: Moment, until: Moment) -> bool:
        row = self._of_claim(job.id, job.token)
        if row is None or row.held_until <= now:
            return False
        self._hold_until(row, until)
        return True

    def settle(self, told: Settlement) -> bool:
        row = self._of_claim(told.id, told.token)
        if row is None:
            return False
        self._let_go(row)
        if told.ending is Ending.GONE:
            del self.rows[row.id]
            return True
        row.error, row.attempts, row.interruptions = told.error, told.attempts, told.interruptions
        if told.ending is Ending.FAILED:
            row.failed_at = told.at
            self.failed[row.id] = row
        else:
            row.run_at = told.at
            self._queue_up(row)
        return True

    def give_back(self, job: Claimed) -> bool:
        row = self._of_claim(job.id, job.token)
        if row is None:
            return False
        self._let_go(row)
        row.attempts -= 1
        if (job.kind, job.unique_key) not in self.waiting_keys:
            self._take_key(row, job.unique_key)
        self._queue_up(row)
        return True

    def run_again(self, id: int, at: Moment) -> bool:
        row = self.failed.pop(id, None)
        if row is None:
            return False
        row.failed_at, row.run_at, row.attempts = None, at, 0
        self._queue_up(row)
        return True

    def forget(self, id: int) -> bool:
        if self.failed.pop(id, None) is None:
            return False
        del self.rows[id]
        return True

    def _of_claim(self, id: int, token: int) -> _Row | None:
        row = self.rows.get(id)
        return row if row is not None and row.token == token and row.failed_at is None else None

    def _let_go(self, row: _Row) -> None:
        """End a claim: the job is in no line, held by nobody and has no token."""
        if row.held_until:
            self._end_hold(row)
        else:
            self._leave_line(row)
        row.token = 0

    def _queue_up(self, row: _Row) -> None:
        insort(self.lines.setdefault(row.lane, []), row.place)

    def _leave_line(self, row: _Row) -> None:
        line = self.lines[row.lane]
        del line[bisect_left(line, row.place)]
        if not line:
            del self.lines[row.lane]

    def _take_key(self, row: _Row, key: str | None) -> None:
        if key is not None:
            row.unique_key = key
            self.waiting_keys[row.given.kind, key] = row

    def _while_free(self, line: _Line, now: Moment) -> Iterator[tuple[Moment, int]]:
        """The due part of a line, cut off where its limit is reached: all that follow in a lane share its limit."""
        row = self.rows[line[0][1]]
        for place in islice(line, _due(line, now)):
            if self._full(row):
                return
            yield place

    def _full(self, row: _Row) -> bool:
        return 0 < row.given.at_once <= self.held[row.given.kind]

    def _count(self, row: _Row) -> None:
        self.held[row.given.kind] += 1
        if row.alone is not None:
            self.held_alone.add(row.alone)

    def _hold_until(self, row: _Row, until: Moment) -> None:
        row.held_until = until
        heappush(self._ends, (until, row.id))

    def _end_hold(self, row: _Row) -> None:
        row.held_until = 0
        self.held[row.given.kind] -= 1
        if row.alone is not None:
            self.held_alone.discard(row.alone)


def _due(line: _Line, now: Moment) -> int:
    """How many jobs of a line are due."""
    return bisect_left(line, (now + 1, 0))


class MemoryStore(Store):
    """Keeps jobs in this process, until it ends.

    It keeps everything a push may ask and has every faculty but those that need a server: a transaction to join,
    a clock of its own, tables to migrate. It may be used from one event loop after another.

    Example:
        >>> import asyncio
        >>> from fastqueue.job import NewJob
        >>> store = MemoryStore()
        >>> asyncio.run(store.push([NewJob(kind="greet", payload="{}", run_at=0)], now=0))
        [Pushed(id=1, new=True)]
    """

    name = "memory"
    keeps = frozenset(Keep)

    def __init__(self) -> None:
        self._share(_Kept())

    def _share(self, kept: _Kept) -> None:
        self._kept = kept
        self.schedules = _MemorySchedules(kept)
        self.holds = _MemoryHolds(kept)
        self.failed = _MemoryFailed(kept)
        self.throttles = _MemoryThrottles(kept)

    def again(self) -> MemoryStore:
        """Another store object on the same jobs, as another process has one on the same database."""
        other = type(self)()
        other._share(self._kept)
        return other

    async def open(self) -> None:
        """See `Store.open`; there is nothing to open."""

    async def close(self) -> None:
        """See `Store.close`; the jobs stay."""

    async def push(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        """See `Store.push`."""
        return [self._kept.push(job, move=job.latest) for job in jobs]

    async def claim(
        self,
        now: Moment,
        *,
        token: int,
        limit: int,
        queues: Sequence[str] | None,
        kinds: Collection[str],
    ) -> Claim:
        """See `Store.claim`."""
        kept = self._kept
        kept.lapse(now)
        jobs: list[Claimed] = []
        for queue in (None,) if queues is None else queues:
            for row in kept.walk(now, limit - len(jobs), queue, kinds):
                jobs.append(kept.hold(row, token=token, until=now + row.given.hold_ms))
        return Claim(jobs, kept.next_due(now, queues, kinds))

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        """See `Store.settle`."""
        return [self._kept.settle(told) for told in settlements]

    async def give_back(self, jobs: Sequence[Claimed]) -> list[bool]:
        """See `Store.give_back`."""
        return [self._kept.give_back(job) for job in jobs]

    async def renew(self, jobs: Sequence[Claimed], *, now: Moment, until: Moment) -> list[bool]:
        """See `Store.renew`."""
        return [self._kept.renew(job, now=now, until=until) for job in jobs]

    async def prune(self, now: Moment, *, failed_before: Moment) -> int:
        """See `Store.prune`."""
        kept = self._kept
        old = [id for id, row in kept.failed.items() if row.failed_at is not None and row.failed_at < failed_before]
        for id in old:
            kept.forget(id)
        kept.held_kinds = {kind: until for kind, until in kept.held_kinds.items() if until > now}
        kept.windows = {key: hits for key, hits in kept.windows.items() if hits.ends > now}
        return len(old)

    async def lanes(self) -> list[Lane]:
        """See `Store.lanes`."""
        return [Lane(*lane, head=line[0][0]) for lane, line in self._kept.lines.items()]

    async def counts(self, now: Moment) -> list[Count]:
        """See `Store.counts`."""
        groups: dict[tuple[str, str], list[StoredJob]] = {}
        for row in self._kept.rows.values():
            groups.setdefault((row.given.queue, row.given.kind), []).append(row.stored())
        return [_count(queue, kind, jobs, now) for (queue, kind), jobs in groups.items()]

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
        """See `Store.jobs`."""
        jobs = (row.stored() for id, row in self._kept.rows.items() if id > after)
        asked = (job for job in jobs if kind in (None, job.kind) and queue in (None, job.queue))
        return list(islice((job for job in asked if state in (None, job.state(now))), limit))


def _count(queue: str, kind: str, jobs: Sequence[StoredJob], now: Moment) -> Count:
    states = Counter(job.state(now) for job in jobs)
    oldest = min((job.run_ms for job in jobs if job.state(now) == "waiting"), default=None)
    return Count(queue, kind, states["waiting"], states["delayed"], states["running"], states["failed"], oldest)


class _MemorySchedules(Schedules):
    def __init__(self, kept: _Kept) -> None:
        self._kept = kept

    async def push_run(self, schedule: str, job: NewJob, *, now: Moment) -> RunPushed:
        runs = self._kept.runs
        recorded = runs.get(schedule)
        if recorded is not None and job.run_at <= recorded:
            return RunPushed(False, recorded)
        pushed = self._kept.push(job, move=False)
        runs[schedule] = job.run_at
        return RunPushed(pushed.new, job.run_at)

    async def recorded(self) -> dict[str, Moment]:
        return dict(self._kept.runs)


class _MemoryHolds(Holds):
    def __init__(self, kept: _Kept) -> None:
        self._kept = kept

    async def hold_back(self, job: Claimed, *, until: Moment) -> bool:
        held = self._kept.held_kinds
        held[job.kind] = max(until, held.get(job.kind, until))
        return self._kept.give_back(job)


class _MemoryFailed(FailedJobs):
    def __init__(self, kept: _Kept) -> None:
        self._kept = kept

    async def page(self, *, limit: int = 100, offset: int = 0, kind: str | None = None) -> list[StoredJob]:
        jobs = [row.stored() for row in self._kept.failed.values() if kind in (None, row.given.kind)]
        jobs.sort(key=lambda job: (job.failed_ms or 0, job.id), reverse=True)
        return jobs[offset : offset + limit]

    async def run_again(self, ids: Sequence[int], *, at: Moment) -> list[bool]:
        return [self._kept.run_again(id, at) for id in ids]

    async def forget(self, ids: Sequence[int]) -> list[bool]:
        return [self._kept.forget(id) for id in ids]


class _MemoryThrottles(Throttles):
    def __init__(self, kept: _Kept) -> None:
        self._kept = kept

    async def hit(self, key: str, *, now: Moment, window_ms: int) -> Hits:
        running = await self.tries(key, now=now) or Hits(0, now + window_ms)
        hits = self._kept.windows[key] = Hits(running.tries + 1, running.ends)
        return hits

    async def tries(self, key: str, *, now: Moment) -> Hits | None:
        hits = self._kept.windows.get(key)
        return hits if hits is not None and hits.ends > now else None

    async def clear(self, key: str) -> None:
        self._kept.windows.pop(key, None)

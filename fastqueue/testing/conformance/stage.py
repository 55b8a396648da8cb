"""Where a check plays: store objects on one new database, and the verbs in the short words of the checks.

Times are moments around `T0`; no check looks at a clock. A job's number stands in its payload.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from typing import Any, TypeAlias, TypeVar

from fastqueue.job import Claimed, Moment, NewJob, Pushed, StoredJob
from fastqueue.moves import Moves
from fastqueue.outcome import Settlement
from fastqueue.store import FailedJobs, Holds, Joins, Keep, Schedules, Store, Throttles
from fastqueue.testing.conformance import crew
from fastqueue.testing.conformance.clause import Way, marks

__all__ = [
    "DAY",
    "HOUR",
    "KINDS",
    "MINUTE",
    "SECOND",
    "T0",
    "Asks",
    "Begin",
    "MakeStore",
    "Stage",
    "job",
    "number",
    "numbers",
]

R = TypeVar("R")

Asks: TypeAlias = dict[str, Any]
"""Fields of `NewJob`, by name."""

MakeStore: TypeAlias = Callable[[], Store]
"""Gives another store object on the same database with each call, not opened yet."""

Begin: TypeAlias = Callable[[], AbstractAsyncContextManager[Any]]
"""Begins a transaction on a connection of the app's to the same database, and gives the handle to push through.

Leaving the context commits; an exception that leaves it rolls back.
"""

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
T0: Moment = 1_788_264_000_000
"""2026-09-01 12:00 UTC."""

KINDS = ("count", "other", "report", "digest", "resize")
"""The kinds a claim asks for unless the check says others."""

CLAIMERS = 8

_FIRST_TOKEN = 2**62 - 2**43 + 1  # the greatest a queue may use are as long as these


def job(n: int = 0, at: Moment = T0, *, kind: str = "count", hold_ms: int = MINUTE, **asks: Any) -> NewJob:
    """A new job with a number, held for a minute by a claim; `asks` are further fields of `NewJob`."""
    return NewJob(kind=kind, payload=f'{{"n": {n}}}', run_at=at, hold_ms=hold_ms, **asks)


def number(of: Claimed | StoredJob) -> int:
    """The number in a job's payload."""
    return int(json.loads(of.payload)["n"])


def numbers(of: Iterable[Claimed | StoredJob]) -> list[int]:
    """The numbers of several jobs, in their order."""
    return [number(each) for each in of]


class Stage:
    """One new database, and what a check does with it.

    Attributes:
        store: The store object under test, open.
        rounds: How often a race is run; FASTQUEUE_KIT_ROUNDS, 5 if that is not set.
        way: In which way a race or a random test is run.
        begin: Begins a transaction of the app's, for stores that can join one.
    """

    def __init__(self, make: MakeStore, *, way: Way = "tasks", begin: Begin | None = None) -> None:
        self.store = make()
        self.rounds = range(int(os.environ.get("FASTQUEUE_KIT_ROUNDS", "5")))
        self.way = way
        self.begin = begin
        self._make = make
        self._opened: list[Store] = []
        self._crew: list[Store] = []
        self._tokens = count(_FIRST_TOKEN)

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Stage]:
        """The stage while its store is open; all of its store objects are closed at the end."""
        try:
            await self._open(self.store)
            yield self
        finally:
            if self.way == "processes":
                await crew.leave()
            for store in reversed(self._opened):
                await store.close()

    async def another(self) -> Store:
        """Another store object on the same database, open."""
        return await self._open(self._make())

    async def _open(self, store: Store) -> Store:
        self._opened.append(store)
        await store.open()
        return store

    def lacking(self, check: Callable[..., Any]) -> str | None:
        """Why the store cannot be asked for a check; None: it can."""
        for need in marks(check).needs:
            if isinstance(need, Keep):
                if need not in self.store.keeps:
                    return f"{self.store.name} does not keep {need}"
            elif getattr(self.store, need) is None:
                return f"{self.store.name} has no faculty {need!r}"
            elif need == "joins" and self.begin is None:
                return f"{self.store.name} joins transactions, but `begin` is not given to begin one"
        return None

    async def race(self, racer: Callable[..., Awaitable[R]], *args: Any, racers: int = CLAIMERS) -> list[R]:
        """Run `racer(store, number, *args)` several times at once, each with a store object of its own."""
        if self.way == "processes":
            return await crew.race(self._make, racer, args, racers)
        while len(self._crew) < racers:
            self._crew.append(await self.another())
        return await asyncio.gather(*(racer(self._crew[i], i, *args) for i in range(racers)))

    def token(self) -> int:
        """A token that no claim has used."""
        return next(self._tokens)

    async def push(self, n: int = 0, at: Moment = T0, **asks: Any) -> Pushed:
        """Push one job; see `job`."""
        [pushed] = await self.store.push([job(n, at, **asks)], now=T0)
        assert isinstance(pushed.id, int)
        return pushed

    async def claim(
        self,
        at: Moment = T0,
        *,
        limit: int = 1,
        kinds: Collection[str] = KINDS,
        queues: Sequence[str] | None = None,
        store: Store | None = None,
    ) -> list[Claimed]:
        """Claim at a moment."""
        token = self.token()
        jobs = (await (store or self.store).claim(at, token=token, limit=limit, queues=queues, kinds=kinds)).jobs
        assert len(jobs) <= limit
        assert all(each.token == token for each in jobs)
        return jobs

    async def take(self, at: Moment = T0, *, kinds: Collection[str] = KINDS) -> Claimed:
        """Claim one job, which must be there."""
        jobs = await self.claim(at, kinds=kinds)
        assert jobs, "the claim found no job"
        return jobs[0]

    async def claim_each(self, at: Moment = T0, **how: Any) -> list[Claimed]:
        """Claim one after the other until nothing is left."""
        found: list[Claimed] = []
        while jobs := await self.claim(at, **how):
            found += jobs
            assert len(found) < 1_000, "claims at one moment find jobs without end"
        return found

    async def nothing(self, at: Moment = T0, *, kinds: Collection[str] = KINDS) -> None:
        """Claim, and find nothing."""
        assert await self.claim(at, limit=10, kinds=kinds) == []

    async def next_due(self, at: Moment = T0, *, kinds: Collection[str] = KINDS) -> Moment | None:
        """Claim, and find nothing but when to look again."""
        claim = await self.store.claim(at, token=self.token(), limit=10, queues=None, kinds=kinds)
        assert claim.jobs == []
        return claim.next_due

    async def settle(self, *settlements: Settlement) -> list[bool]:
        return await self.store.settle(settlements)

    async def done(self, claimed: Claimed) -> bool:
        return (await self.settle(Settlement.done(claimed)))[0]

    async def retry(self, claimed: Claimed, at: Moment, error: str | None = "it broke") -> bool:
        return (await self.settle(Settlement.retry(claimed, at=at, error=error)))[0]

    async def fail(self, claimed: Claimed, at: Moment = T0, error: str = "it broke") -> bool:
        return (await self.settle(Settlement.fail(claimed, at=at, error=error)))[0]

    async def failed(self, n: int, *, error: str = "it broke", at: Moment = T0, **asks: Any) -> int:
        """Push a job, claim it and fail it for good at a moment; its id. No other of its kind may be due."""
        await self.push(n, **asks)
        claimed = await self.take(kinds=[asks.get("kind", "count")])
        assert await self.fail(claimed, at, error)
        return claimed.id

    async def give_back(self, claimed: Claimed) -> bool:
        return (await self.store.give_back([claimed]))[0]

    async def stored(self, now: Moment = T0, **which: Any) -> list[StoredJob]:
        """All jobs as they are kept, page by page."""
        found: list[StoredJob] = []
        while page := await self.store.jobs(now=now, after=found[-1].id if found else 0, **which):
            found += page
        return found

    @property
    def schedules(self) -> Schedules:
        return _there(self.store.schedules)

    @property
    def holds(self) -> Holds:
        return _there(self.store.holds)

    @property
    def failures(self) -> FailedJobs:
        return _there(self.store.failed)

    @property
    def throttles(self) -> Throttles:
        return _there(self.store.throttles)

    @property
    def moves(self) -> Moves:
        return _there(self.store.moves)

    @property
    def joins(self) -> Joins:
        return _there(self.store.joins)


def _there(faculty: R | None) -> R:
    assert faculty is not None
    return faculty

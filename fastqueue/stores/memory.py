"""A store in memory: the contract as a program, to be read next to `fastqueue.store`.

Nothing here waits for anything, so each verb is one step for every task of a loop and needs no lock. It keeps jobs
until the process ends: for tests, and for apps whose jobs may be lost with the process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import islice

from fastqueue.job import Claimed, Lane, Moment, NewJob, Pushed, StoredJob, Which
from fastqueue.moves import Moves, Portion
from fastqueue.outcome import Settlement
from fastqueue.store import Claim, Count, FailedJobs, Hits, Holds, Keep, RunPushed, Schedules, Store, Throttles
from fastqueue.stores._kept import Kept

__all__ = ["MemoryStore"]


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
        self._share(Kept())

    def _share(self, kept: Kept) -> None:
        self._kept = kept
        self.schedules = _MemorySchedules(kept)
        self.holds = _MemoryHolds(kept)
        self.failed = _MemoryFailed(kept)
        self.throttles = _MemoryThrottles(kept)
        self.moves = _MemoryMoves(kept)

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
        return self.take(jobs)

    def take(self, jobs: Sequence[NewJob]) -> list[Pushed]:
        """The same as a plain call, on the loop where the store is used."""
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
    def __init__(self, kept: Kept) -> None:
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

    async def tell_zone_data(self, version: str, *, now: Moment) -> dict[str, Moment]:
        self._kept.zone_data[version] = now
        return dict(self._kept.zone_data)


class _MemoryHolds(Holds):
    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    async def hold_back(self, job: Claimed, *, until: Moment) -> bool:
        held = self._kept.held_kinds
        held[job.kind] = max(until, held.get(job.kind, until))
        return self._kept.give_back(job)


class _MemoryFailed(FailedJobs):
    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    async def page(
        self, which: Which | None = None, *, limit: int = 100, after: StoredJob | None = None
    ) -> list[StoredJob]:
        jobs = sorted((row.stored() for row in self._kept.failed.values()), key=_failure, reverse=True)
        meant = filter((which or Which()).fits, jobs)
        return list(islice((job for job in meant if after is None or _failure(job) < _failure(after)), limit))

    async def run_again(self, ids: Sequence[int], *, at: Moment) -> list[bool]:
        return [self._kept.run_again(id, at) for id in ids]

    async def forget(self, ids: Sequence[int]) -> list[bool]:
        return [self._kept.forget(id) for id in ids]


def _failure(job: StoredJob) -> tuple[Moment, int]:
    """The place of a failed job in their list."""
    return job.failed_ms or 0, job.id


class _MemoryThrottles(Throttles):
    def __init__(self, kept: Kept) -> None:
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


class _MemoryMoves(Moves):
    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    async def identity(self) -> str:
        return self._kept.identity

    async def leave(self, to: str, *, now: Moment, limit: int) -> Portion | None:
        self._kept.lapse(now)
        return self._kept.leave(to, limit)

    async def left(self, number: int) -> None:
        self._kept.left(number)

    async def arrive(self, portion: Portion, *, origin: str) -> bool:
        return self._kept.arrive(portion, origin)

    async def record(self, runs: Mapping[str, Moment]) -> None:
        recorded = self._kept.runs
        recorded.update({name: max(run_at, recorded.get(name, run_at)) for name, run_at in runs.items()})

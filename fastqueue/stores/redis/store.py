"""The Redis store: jobs on a Redis server, for any number of processes."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import ClassVar

from fastqueue.errors import OptionError
from fastqueue.job import Claimed, Lane, Moment, NewJob, Pushed, StoredJob
from fastqueue.outcome import Settlement
from fastqueue.store import Claim, Count, Keep, Store
from fastqueue.stores.redis._access import Access, driver
from fastqueue.stores.redis._address import Address
from fastqueue.stores.redis._faculties import (
    RedisFailedJobs,
    RedisHolds,
    RedisSchedules,
    RedisThrottles,
    RedisTime,
)
from fastqueue.stores.redis._inspects import RedisInspects
from fastqueue.stores.redis._moves import RedisMoves
from fastqueue.stores.redis._rows import (
    Argument,
    claim_of,
    claimed,
    escaped,
    lane_of,
    new_job,
    padded,
    parts_of,
    settled,
    stored,
)
from fastqueue.stores.redis._server import check
from fastqueue.stores.redis._wakes import RedisWakes

__all__ = ["RedisStore"]

PORTION = 500
"""How many jobs a script prunes or looks through: the server does nothing else meanwhile."""

_SHELF = {"running": "held", "failed": "failed"}


class RedisStore(Store):
    """Keeps jobs on a Redis server, version 7 or newer, through redis-py.

    Each verb is one script, so it happens wholly or not at all, and no two claims meet. What it cannot promise:

    - A push is not part of your transaction: pushed by `kind.in_(session)`, jobs go out right after the commit, and
      never after a rollback. A process that dies between the two, or a server that is away just then, loses them.
    - What the server's memory loses is lost. With `appendonly yes` and `appendfsync everysec`, a crash of the server
      loses about the last second of pushes, and of runs that ended, whose jobs run again; with `always` nothing that
      was answered. Without the append-only file, which is Redis's default, minutes go, or all; opening warns. A
      replica that takes over lacks what had not reached it.

    A server whose `maxmemory-policy` lets it throw away keys is refused; one that is full refuses pushes, and lets
    jobs be claimed and settled. Clusters are refused. No key of a job's ever expires.

    Args:
        url: "redis://user:password@host:6379/0", "rediss://..." for TLS, or "unix:///path/to/redis.sock?db=0". What
            follows a "?" goes to the driver, but for "prefix".
        prefix: What all keys begin with, in braces: "{fastqueue}:". Queues with different prefixes share nothing.
            Default: the URL's `?prefix=`, or "fastqueue".
        pool_size: How many connections a process may use, besides one that listens. They are made when needed.

    Raises:
        OptionError: a URL that is none, or a prefix that cannot be.
        MissingDriver: redis is not installed.

    Example:
        >>> RedisStore("redis://:secret@cache:6379/1?prefix=shop")
        RedisStore('redis://cache:6379/1', prefix='shop')
    """

    name: ClassVar[str] = "redis"
    keeps = frozenset(Keep)

    def __init__(self, url: str, *, prefix: str | None = None, pool_size: int = 8) -> None:
        if pool_size < 1:
            raise OptionError(f"pool_size is {pool_size!r}; the store needs at least 1 connection")
        driver()
        self._access = access = Access(Address.read(url, prefix), size=pool_size)
        self.schedules = RedisSchedules(access)
        self.holds = RedisHolds(access)
        self.failed = RedisFailedJobs(access)
        self.throttles = RedisThrottles(access)
        self.time = RedisTime(access)
        self.wakes = RedisWakes(access)
        self.moves = RedisMoves(access)
        self.inspects = RedisInspects(access, size=pool_size)

    def __repr__(self) -> str:
        return f"RedisStore({self._access.address.shown!r}, prefix={self._access.address.prefix!r})"

    async def open(self) -> None:
        if self._access.is_open:
            return
        self._access.connect()
        try:
            await check(self._access)
        except BaseException:
            await self._access.close()
            raise
        self._access.ready = True

    async def close(self) -> None:
        await self._access.close()

    async def push(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        if not jobs:
            return []
        arguments: list[Argument] = [now, self._access.channel]
        for job in jobs:
            arguments += (lane_of(job), job.run_at, int(job.latest), *new_job(job))
        flat = await self._access.run("push", *arguments)
        return [Pushed(int(id), bool(new)) for id, new in zip(flat[::2], flat[1::2], strict=True)]

    async def claim(
        self,
        now: Moment,
        *,
        token: int,
        limit: int,
        queues: Sequence[str] | None,
        kinds: Collection[str],
    ) -> Claim:
        if limit < 1 or not kinds or (queues is not None and not queues):
            return Claim([])
        lines = [escaped(queue) for queue in queues or ()]
        next_due, taken = await self._access.run(
            "claim", now, token, limit, len(kinds), *map(escaped, kinds), len(lines), *lines
        )
        return Claim([claimed(id, flat, now=now, token=token) for id, flat in json.loads(taken)], next_due)

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        return await self._tell("settle", [part for told in settlements for part in settled(told)])

    async def give_back(self, jobs: Sequence[Claimed]) -> list[bool]:
        return await self._tell("give_back", [part for job in jobs for part in claim_of(job)])

    async def renew(self, jobs: Sequence[Claimed], *, now: Moment, until: Moment) -> list[bool]:
        claims = [part for job in jobs for part in (padded(job.id), job.token)]
        return await self._tell("renew", [now, until, *claims]) if claims else []

    async def _tell(self, script: str, arguments: Sequence[Argument]) -> list[bool]:
        return [bool(one) for one in await self._access.run(script, *arguments)] if arguments else []

    async def prune(self, now: Moment, *, failed_before: Moment) -> int:
        gone, more = 0, True
        while more:
            portion, more = await self._access.run("prune", now, failed_before, PORTION)
            gone += portion
        return gone

    async def lanes(self) -> list[Lane]:
        flat = await self._access.run("lanes")
        found = ((parts_of(lane), head) for lane, head in zip(flat[::2], flat[1::2], strict=True))
        return [Lane(queue, kind, mode, head) for (mode, queue, kind), head in found]

    async def counts(self, now: Moment) -> list[Count]:
        counts: dict[tuple[str, str], Count] = {}
        for lane, waiting, delayed, running, failed, oldest in await self._access.run("counts", now):
            _, queue, kind = parts_of(lane)
            other = counts.get((queue, kind), Count(queue, kind, 0, 0, 0, 0, None))
            counts[queue, kind] = Count(
                queue,
                kind,
                waiting + other.waiting,
                delayed + other.delayed,
                running + other.running,
                failed + other.failed,
                min((each for each in (oldest, other.oldest) if each is not None), default=None),
            )
        return list(counts.values())

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
        asked = _SHELF.get(state or "", ""), escaped(kind or ""), escaped(queue or "")
        found: list[StoredJob] = []
        at: int | str | None = after
        while at is not None and len(found) < limit:
            at, rows = await self._access.run("look", *asked, at, PORTION)
            jobs = (stored(row) for row in rows)
            found += [job for job in jobs if state in (None, job.state(now))]
        return found[:limit]

"""What the Redis store can do beyond the verbs: schedules, holding kinds back, failed jobs, throttles, its clock."""

from __future__ import annotations

from collections.abc import Sequence

from fastqueue.job import Claimed, Moment, NewJob, StoredJob, Which
from fastqueue.store import FailedJobs, Hits, Holds, RunPushed, Schedules, StoreTime, Throttles
from fastqueue.stores.redis._access import Access
from fastqueue.stores.redis._rows import claim_of, escaped, lane_of, new_job, padded, stored

__all__ = ["RedisFailedJobs", "RedisHolds", "RedisSchedules", "RedisThrottles", "RedisTime"]

PORTION = 500
"""How many failed jobs a script looks through."""

_EVER = 2**53
"""A moment later than any, and negative earlier than any, that is still exact in a script."""


class RedisSchedules(Schedules):
    """The last run of each schedule, written by the script that pushes it."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def push_run(self, schedule: str, job: NewJob, *, now: Moment) -> RunPushed:
        pushed, recorded = await self._access.run(
            "push_run", now, self._access.channel, schedule, lane_of(job), job.run_at, *new_job(job)
        )
        return RunPushed(bool(pushed), recorded)

    async def recorded(self) -> dict[str, Moment]:
        return _moments(await self._access.call("ZRANGE", self._access.root + "runs", 0, -1, "WITHSCORES"))

    async def tell_zone_data(self, version: str, *, now: Moment) -> dict[str, Moment]:
        return _moments(await self._access.run("tell_zones", now, version))


def _moments(flat: Sequence[str]) -> dict[str, Moment]:
    return {name: int(at) for name, at in zip(flat[::2], flat[1::2], strict=True)}


class RedisHolds(Holds):
    """The moments until which kinds are held back."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def hold_back(self, job: Claimed, *, until: Moment) -> bool:
        return bool(await self._access.run("hold_back", escaped(job.kind), until, *claim_of(job)))


class RedisFailedJobs(FailedJobs):
    """The shelf of the failed jobs."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def page(
        self, which: Which | None = None, *, limit: int = 100, after: StoredJob | None = None
    ) -> list[StoredJob]:
        which = which or Which()
        asked = escaped(which.kind or ""), escaped(which.queue or ""), -_EVER if which.since is None else which.since
        place = (_EVER, "") if which.before is None else (which.before, "")
        if after is not None:
            place = min(place, _place(after))
        found: list[StoredJob] = []
        while len(found) < limit:
            portion = PORTION if which.error else min(PORTION, limit - len(found))
            rows = await self._access.run("failed", *asked, *place, portion)
            jobs = [stored(row) for row in rows]
            found += filter(which.fits, jobs)
            if len(jobs) < portion:
                break
            place = _place(jobs[-1])
        return found[:limit]

    async def run_again(self, ids: Sequence[int], *, at: Moment) -> list[bool]:
        found = await self._access.run("run_again", at, self._access.channel, *map(padded, ids))
        return [bool(one) for one in found]

    async def forget(self, ids: Sequence[int]) -> list[bool]:
        return [bool(one) for one in await self._access.run("forget", *map(padded, ids))]


def _place(job: StoredJob) -> tuple[Moment, str]:
    """The place of a failed job in their list."""
    return job.failed_ms or 0, padded(job.id)


class RedisThrottles(Throttles):
    """The windows that run."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def hit(self, key: str, *, now: Moment, window_ms: int) -> Hits:
        return Hits(*await self._access.run("hit", now, window_ms, key))

    async def tries(self, key: str, *, now: Moment) -> Hits | None:
        found = await self._access.run("tries", now, key)
        return Hits(*found) if found else None

    async def clear(self, key: str) -> None:
        await self._access.run("clear", key)


class RedisTime(StoreTime):
    """The server's clock."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def now(self) -> Moment:
        seconds, microseconds = await self._access.call("TIME")
        return int(seconds) * 1000 + int(microseconds) // 1000

"""What the PostgreSQL store can do beyond the verbs: schedules, held kinds, the failed jobs, throttles, time."""

from __future__ import annotations

from collections.abc import Sequence

from fastqueue.job import Claimed, Moment, NewJob, StoredJob, Which
from fastqueue.store import FailedJobs, Hits, Holds, RunPushed, Schedules, StoreTime, Throttles
from fastqueue.stores._rows import failed_page_values, new_job_values, stored
from fastqueue.stores.postgres._access import Access

__all__ = ["PostgresFailedJobs", "PostgresHolds", "PostgresSchedules", "PostgresThrottles", "PostgresTime"]


class PostgresSchedules(Schedules):
    """A table of each schedule's last run, written by the statement that pushes it."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def push_run(self, schedule: str, job: NewJob, *, now: Moment) -> RunPushed:
        notice = self._access.notice(job.queue if job.run_at <= now else None)
        got = await self._access.do("schedules.push_run", **new_job_values(job, now), **notice, name=schedule)
        if not got.rows:
            # A statement of its own: the one before may not see the row that was in its way.
            got = await self._access.do("schedules.one", name=schedule)
            return RunPushed(False, got.rows[0][0])
        pushed, recorded, _ = got.rows[0]
        return RunPushed(pushed, recorded)

    async def recorded(self) -> dict[str, Moment]:
        got = await self._access.do("schedules.recorded")
        return {str(row[0]): int(row[1]) for row in got.rows}

    async def tell_zone_data(self, version: str, *, now: Moment) -> dict[str, Moment]:
        await self._access.do("schedules.tell", name=version, now=now)
        got = await self._access.do("schedules.told")
        return {str(told): int(at) for told, at in got.rows}


class PostgresHolds(Holds):
    """A table of the kinds that are held back."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def hold_back(self, job: Claimed, *, until: Moment) -> bool:
        got = await self._access.do_on(
            self._access.here.ends,
            "hold_back.kind",
            kind=job.kind,
            until=until,
            id=job.id,
            token=job.token,
            unique_key=job.unique_key,
        )
        return bool(got.rows[0][0])


class PostgresFailedJobs(FailedJobs):
    """The rows that have a `failed_at`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def page(
        self, which: Which | None = None, *, limit: int = 100, after: StoredJob | None = None
    ) -> list[StoredJob]:
        got = await self._access.do("failed.page", **failed_page_values(which, limit, after))
        return [stored(row) for row in got.rows]

    async def run_again(self, ids: Sequence[int], *, at: Moment) -> list[bool]:
        got = await self._access.do("failed.run_again", ids=ids, at=at, **self._access.notice(""))
        again: set[int] = set(got.rows[0][0] or [])
        return [id in again for id in ids]

    async def forget(self, ids: Sequence[int]) -> list[bool]:
        got = await self._access.do("failed.forget", ids=ids)
        gone = {id for (id,) in got.rows}
        return [id in gone for id in ids]


class PostgresThrottles(Throttles):
    """A table of the windows that run."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def hit(self, key: str, *, now: Moment, window_ms: int) -> Hits:
        got = await self._access.do("throttles.hit", name=key, now=now, window_ms=window_ms)
        return Hits(*got.rows[0])

    async def tries(self, key: str, *, now: Moment) -> Hits | None:
        got = await self._access.do("throttles.tries", name=key, now=now)
        return Hits(*got.rows[0]) if got.rows else None

    async def clear(self, key: str) -> None:
        await self._access.do("throttles.clear", name=key)


class PostgresTime(StoreTime):
    """The server's clock."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def now(self) -> Moment:
        got = await self._access.do("meta.now")
        return int(got.rows[0][0])

"""What the SQL stores can do beyond the verbs, as far as they do it alike."""

from __future__ import annotations

from typing import Generic

from fastqueue.job import Moment, NewJob, StoredJob, Which
from fastqueue.store import FailedJobs, Hits, RunPushed, Schedules, StoreTime, Throttles
from fastqueue.stores._rows import failed_page_values, stored
from fastqueue.stores._sql import Call, Steps
from fastqueue.stores._sql_store import A, SQLAccess
from fastqueue.stores.joins import Push

__all__ = ["SQLFailedJobs", "SQLSchedules", "SQLSchedulesInSteps", "SQLThrottles", "SQLTime"]


class SQLSchedules(Schedules, Generic[A]):
    """A table of each schedule's last run."""

    def __init__(self, access: A) -> None:
        self._access = access

    async def recorded(self) -> dict[str, Moment]:
        got = await self._access.ask("schedules.recorded")
        return {str(name): int(run_at) for name, run_at in got.rows}

    async def tell_zone_data(self, version: str, *, now: Moment) -> dict[str, Moment]:
        await self._access.do("schedules.tell", name=version, now=now)
        got = await self._access.ask("schedules.told")
        return {str(told): int(at) for told, at in got.rows}


class SQLSchedulesInSteps(SQLSchedules[A]):
    """A run is recorded and pushed step by step in one transaction, where no single statement can do both.

    Args:
        push: The store's push.
    """

    def __init__(self, access: A, push: Push) -> None:
        super().__init__(access)
        self._push = push

    async def push_run(self, schedule: str, job: NewJob, *, now: Moment) -> RunPushed:
        return await self._access.change(lambda: self._push_run(schedule, job._replace(latest=False), now))

    def _push_run(self, schedule: str, job: NewJob, now: Moment) -> Steps[RunPushed]:
        statements = self._access.statements
        recorded = yield Call(statements["schedules.record"], {"name": schedule, "run_at": job.run_at})
        if not recorded.touched:
            got = yield Call(statements["schedules.one"], {"name": schedule})
            return RunPushed(False, got.rows[0][0])
        (pushed,) = yield from self._push([job], now)
        return RunPushed(pushed.new, job.run_at)


class SQLFailedJobs(FailedJobs, Generic[A]):
    """The rows that have a `failed_at`."""

    def __init__(self, access: A) -> None:
        self._access = access

    async def page(
        self, which: Which | None = None, *, limit: int = 100, after: StoredJob | None = None
    ) -> list[StoredJob]:
        got = await self._access.ask("failed.page", **failed_page_values(which, limit, after))
        return [stored(row) for row in got.rows]


class SQLThrottles(Throttles):
    """A table of the windows that run."""

    def __init__(self, access: SQLAccess) -> None:
        self._access = access

    async def hit(self, key: str, *, now: Moment, window_ms: int) -> Hits:
        got = await self._access.do("throttles.hit", name=key, now=now, window_ms=window_ms)
        return Hits(*got.rows[0])

    async def tries(self, key: str, *, now: Moment) -> Hits | None:
        got = await self._access.ask("throttles.tries", name=key, now=now)
        return Hits(*got.rows[0]) if got.rows else None

    async def clear(self, key: str) -> None:
        await self._access.do("throttles.clear", name=key)


class SQLTime(StoreTime):
    """The server's clock."""

    def __init__(self, access: SQLAccess) -> None:
        self._access = access

    async def now(self) -> Moment:
        return int((await self._access.ask("meta.now")).rows[0][0])

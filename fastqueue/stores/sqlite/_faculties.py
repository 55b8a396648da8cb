"""What the SQLite store can do beyond the verbs: schedules, holding kinds back, the failed jobs, throttles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fastqueue.job import Claimed, Moment, NewJob, StoredJob, Which
from fastqueue.store import FailedJobs, Hits, Holds, RunPushed, Schedules, Throttles
from fastqueue.stores._rows import failed_page_values, stored
from fastqueue.stores._sql import Statements, run_sync
from fastqueue.stores.sqlite._access import Access
from fastqueue.stores.sqlite._database import Database
from fastqueue.stores.sqlite._push import push_steps
from fastqueue.stores.sqlite._settle import give_back

__all__ = ["SQLiteFailedJobs", "SQLiteHolds", "SQLiteSchedules", "SQLiteThrottles"]


class SQLiteSchedules(Schedules):
    """A table of each schedule's last run, written in the transaction that pushes it."""

    def __init__(self, access: Access, statements: Statements) -> None:
        self._access = access
        self._statements = statements

    async def push_run(self, schedule: str, job: NewJob, *, now: Moment) -> RunPushed:
        def push(database: Database) -> RunPushed:
            if not database.do("schedules.record", name=schedule, run_at=job.run_at).rowcount:
                ((recorded,),) = database.do("schedules.one", name=schedule)
                return RunPushed(False, recorded)
            still = replace(job, latest=False)
            (pushed,) = run_sync(push_steps(self._statements, [still], now), database.execute)
            return RunPushed(pushed.new, job.run_at)

        return await self._access.write(push)

    async def recorded(self) -> dict[str, Moment]:
        return await self._access.read(lambda database: dict(database.do("schedules.recorded").fetchall()))

    async def tell_zone_data(self, version: str, *, now: Moment) -> dict[str, Moment]:
        def tell(database: Database) -> dict[str, Moment]:
            database.do("schedules.tell", name=version, now=now)
            return {told: int(at) for told, at in database.do("schedules.told")}

        return await self._access.write(tell)


class SQLiteHolds(Holds):
    """A table of the kinds that are held back."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def hold_back(self, job: Claimed, *, until: Moment) -> bool:
        def hold(database: Database) -> bool:
            database.do("hold_back.kind", kind=job.kind, until=until)
            return give_back(database, [job])[0]

        return await self._access.write(hold)


class SQLiteFailedJobs(FailedJobs):
    """The rows that have a `failed_at`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def page(
        self, which: Which | None = None, *, limit: int = 100, after: StoredJob | None = None
    ) -> list[StoredJob]:
        values = failed_page_values(which, limit, after)

        def page(database: Database) -> list[StoredJob]:
            return [stored(row) for row in database.do("failed.page", **values)]

        return await self._access.read(page)

    async def run_again(self, ids: Sequence[int], *, at: Moment) -> list[bool]:
        def again(database: Database) -> list[bool]:
            return [database.do("failed.run_again", id=id, at=at).rowcount == 1 for id in ids]

        return await self._access.write(again)

    async def forget(self, ids: Sequence[int]) -> list[bool]:
        def forget(database: Database) -> list[bool]:
            return [database.do("failed.forget", id=id).rowcount == 1 for id in ids]

        return await self._access.write(forget)


class SQLiteThrottles(Throttles):
    """A table of the windows that run."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def hit(self, key: str, *, now: Moment, window_ms: int) -> Hits:
        def hit(database: Database) -> Hits:
            return Hits(*database.do("throttles.hit", name=key, now=now, window_ms=window_ms).fetchone())

        return await self._access.write(hit)

    async def tries(self, key: str, *, now: Moment) -> Hits | None:
        def tries(database: Database) -> Hits | None:
            row = database.do("throttles.tries", name=key, now=now).fetchone()
            return None if row is None else Hits(*row)

        return await self._access.read(tries)

    async def clear(self, key: str) -> None:
        await self._access.write(lambda database: _clear(database, key))


def _clear(database: Database, key: str) -> None:
    database.do("throttles.clear", name=key)

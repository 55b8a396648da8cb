"""What the SQLite store can do beyond the verbs in its own way: held kinds, the failed jobs."""

from __future__ import annotations

from collections.abc import Sequence

from fastqueue.job import Claimed, Moment
from fastqueue.store import Holds
from fastqueue.stores._sql_faculties import SQLFailedJobs
from fastqueue.stores.sqlite._access import Access
from fastqueue.stores.sqlite._database import Database
from fastqueue.stores.sqlite._settle import give_back

__all__ = ["SQLiteFailedJobs", "SQLiteHolds"]


class SQLiteHolds(Holds):
    """A table of the kinds that are held back."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def hold_back(self, job: Claimed, *, until: Moment) -> bool:
        def hold(database: Database) -> bool:
            database.do("hold_back.kind", kind=job.kind, until=until)
            return give_back(database, [job])[0]

        return await self._access.write(hold)


class SQLiteFailedJobs(SQLFailedJobs[Access]):
    """The rows that have a `failed_at`; changed one by one, each by its id."""

    async def run_again(self, ids: Sequence[int], *, at: Moment) -> list[bool]:
        def again(database: Database) -> list[bool]:
            return [database.do("failed.run_again", id=id, at=at).rowcount == 1 for id in ids]

        return await self._access.write(again)

    async def forget(self, ids: Sequence[int]) -> list[bool]:
        def forget(database: Database) -> list[bool]:
            return [database.do("failed.forget", id=id).rowcount == 1 for id in ids]

        return await self._access.write(forget)

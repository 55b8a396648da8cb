"""The store's tables: made and upgraded within one transaction, so that of two instances one finds it done."""

from __future__ import annotations

import time

from fastqueue.store import Migrates
from fastqueue.stores import _migrations
from fastqueue.stores._sql import Statements, Tables, run_sync
from fastqueue.stores.sqlite._access import Access
from fastqueue.stores.sqlite._database import Database

__all__ = ["SQLiteMigrates"]


class SQLiteMigrates(Migrates):
    """The migrations of one set of tables; it opens the file when the store has not."""

    def __init__(self, access: Access, statements: Statements, tables: Tables) -> None:
        self._access = access
        self._statements = statements
        self._tables = tables
        self._known = _migrations.load("sqlite", tables)
        self.latest = self._known[-1].number

    async def current(self) -> int:
        await self._access.open()
        return await self._access.read(self._current)

    async def migrate(self) -> list[int]:
        if not _migrations.missing(self._known, await self.current(), self._tables):
            return []
        return await self._access.write(self._migrate)

    async def check(self) -> None:
        """Refuse tables that are not at the latest migration.

        Raises:
            SchemaMissing, SchemaTooOld, SchemaTooNew: they are not.
        """
        _migrations.require_latest(self._known, await self.current(), self._tables)

    def sql(self, *, since: int = 0) -> str:
        later = [migration for migration in self._known if migration.number > since]
        return _migrations.sql_text(later, self._tables, now="CAST(strftime('%s', 'now') AS INTEGER) * 1000")

    def _current(self, database: Database) -> int:
        ((there,),) = database.do("meta.tables", name=self._tables.name("migrations"))
        if not there:
            return 0
        ((number,),) = database.do("meta.current")
        return int(number)

    def _migrate(self, database: Database) -> list[int]:
        missing = _migrations.missing(self._known, self._current(database), self._tables)
        steps = _migrations.apply(missing, record=self._statements["meta.record"], now=time.time_ns() // 1_000_000)
        return run_sync(steps, database.execute)

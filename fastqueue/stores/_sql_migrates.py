"""The tables of an SQL store, made and upgraded by the migrations of its dialect."""

from __future__ import annotations

import time
from typing import ClassVar, Generic

from fastqueue.store import Migrates
from fastqueue.stores import _migrations
from fastqueue.stores._sql import Call, Steps, run
from fastqueue.stores._sql_store import A

__all__ = ["SQLMigrates"]


class SQLMigrates(Migrates, Generic[A]):
    """The migrations of one set of tables.

    Attributes:
        now: The dialect's word for this moment in milliseconds.

    Args:
        access: The way to the database; it need not be open.
    """

    now: ClassVar[str]

    def __init__(self, access: A) -> None:
        self._access = access
        self._known = _migrations.load(access.statements.dialect, access.tables)
        self.latest = self._known[-1].number

    async def current(self) -> int:
        return await run(self._current(), lambda call: self._access.ask(call.statement.name, **call.values))

    async def migrate(self) -> list[int]:
        if not _migrations.missing(self._known, await self.current(), self._access.tables):
            return []
        return await self._migrate()

    async def _migrate(self) -> list[int]:
        """Apply what is missing, one instance at a time."""
        return await self._access.change(self._apply)

    def _apply(self) -> Steps[list[int]]:
        """Apply what is missing now, when no other instance does."""
        missing = _migrations.missing(self._known, (yield from self._current()), self._access.tables)
        record = self._access.statements["meta.record"]
        return (yield from _migrations.apply(missing, record=record, now=time.time_ns() // 1_000_000))

    def _current(self) -> Steps[int]:
        statements = self._access.statements
        got = yield Call(statements["meta.tables"], {"name": self._table()})
        if not got.rows[0][0]:
            return 0
        got = yield Call(statements["meta.current"], {})
        return int(got.rows[0][0])

    def _table(self) -> str:
        """The table of migrations, as the server is asked for it."""
        return self._access.tables.name("migrations")

    async def check(self) -> None:
        """Refuse tables that are not at the latest migration.

        Raises:
            SchemaMissing, SchemaTooOld, SchemaTooNew: they are not.
        """
        _migrations.require_latest(self._known, await self.current(), self._access.tables)

    def sql(self, *, since: int = 0) -> str:
        later = [migration for migration in self._known if migration.number > since]
        return _migrations.sql_text(later, self._access.tables, now=self.now)

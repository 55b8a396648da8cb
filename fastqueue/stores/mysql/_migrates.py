"""The store's tables: made and upgraded step by step, under a lock of the server that other instances wait for."""

from __future__ import annotations

import time

from fastqueue.errors import StoreUnavailable
from fastqueue.store import Migrates
from fastqueue.stores import _migrations
from fastqueue.stores._sql import Call, run
from fastqueue.stores.mysql._access import Access
from fastqueue.stores.mysql._connections import Execute

__all__ = ["MySQLMigrates"]

WAITS = 60
"""Seconds to wait for another instance that migrates."""


class MySQLMigrates(Migrates):
    """The migrations of one set of tables; it connects when the store is not open.

    MySQL commits after each statement that makes a table. One that was broken off is begun again from its first
    statement, so each of them can find its work done.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._known = _migrations.load("mysql", access.tables)
        self.latest = self._known[-1].number

    async def current(self) -> int:
        async with self._access.here.others.statements() as execute:
            return await self._current(execute)

    async def migrate(self) -> list[int]:
        tables, statements = self._access.tables, self._access.statements
        name = tables.name("migrations")
        async with self._access.here.others.statements() as execute:
            if not _migrations.missing(self._known, await self._current(execute), tables):
                return []
            got = await execute(Call(statements["meta.lock"], {"name": name, "seconds": WAITS}))
            if got.rows[0][0] != 1:
                raise StoreUnavailable(
                    f"another instance has been migrating the tables {tables.name('*')} for {WAITS} s; "
                    "wait for it, or end its connection"
                )
            missing = _migrations.missing(self._known, await self._current(execute), tables)
            now = time.time_ns() // 1_000_000
            applied = await run(_migrations.apply(missing, record=statements["meta.record"], now=now), execute)
            await execute(Call(statements["meta.unlock"], {"name": name}))
            return applied

    async def check(self) -> None:
        """Refuse tables that are not at the latest migration.

        Raises:
            SchemaMissing, SchemaTooOld, SchemaTooNew: they are not.
        """
        _migrations.require_latest(self._known, await self.current(), self._access.tables)

    def sql(self, *, since: int = 0) -> str:
        later = [migration for migration in self._known if migration.number > since]
        return _migrations.sql_text(later, self._access.tables, now="FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000)")

    async def _current(self, execute: Execute) -> int:
        statements = self._access.statements
        got = await execute(Call(statements["meta.tables"], {"name": self._access.tables.name("migrations")}))
        if not got.rows[0][0]:
            return 0
        got = await execute(Call(statements["meta.current"], {}))
        return int(got.rows[0][0])

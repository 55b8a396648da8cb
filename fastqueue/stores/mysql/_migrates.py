"""The store's tables: made and upgraded step by step, under a lock of the server that other instances wait for."""

from __future__ import annotations

from fastqueue.errors import StoreUnavailable
from fastqueue.stores._sql import Call, Steps, run
from fastqueue.stores._sql_migrates import SQLMigrates
from fastqueue.stores.mysql._access import Access

__all__ = ["MySQLMigrates"]

WAITS = 60
"""Seconds to wait for another instance that migrates."""


class MySQLMigrates(SQLMigrates[Access]):
    """The migrations of one set of tables; it connects when the store is not open.

    MySQL commits after each statement that makes a table. One that was broken off is begun again from its first
    statement, so each of them can find its work done.
    """

    now = "FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000)"

    async def _migrate(self) -> list[int]:
        # The lock is its connection's, so all of it goes over one.
        async with self._access.here.others.statements() as execute:
            return await run(self._apply(), execute)

    def _apply(self) -> Steps[list[int]]:
        tables, statements = self._access.tables, self._access.statements
        name = tables.name("migrations")
        got = yield Call(statements["meta.lock"], {"name": name, "seconds": WAITS})
        if got.rows[0][0] != 1:
            raise StoreUnavailable(
                f"another instance has been migrating the tables {tables.name('*')} for {WAITS} s; "
                "wait for it, or end its connection"
            )
        applied = yield from super()._apply()
        yield Call(statements["meta.unlock"], {"name": name})
        return applied

"""The store's tables: made and upgraded within one transaction, so that of two instances one finds it done."""

from __future__ import annotations

from fastqueue.stores._sql_migrates import SQLMigrates
from fastqueue.stores.sqlite._access import Access

__all__ = ["SQLiteMigrates"]


class SQLiteMigrates(SQLMigrates[Access]):
    """The migrations of one set of tables; it opens the file when the store has not."""

    now = "CAST(strftime('%s', 'now') AS INTEGER) * 1000"

    async def current(self) -> int:
        await self._access.open()
        return await super().current()

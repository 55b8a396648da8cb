"""Where the PostgreSQL store's tables are, for those who push through connections of their own."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from fastqueue.stores._sql import Call, Got
from fastqueue.stores.joins import Push, ServerHome
from fastqueue.stores.postgres._access import Access

if TYPE_CHECKING:
    from asyncpg import Connection

__all__ = ["PostgresHome"]


class PostgresHome(ServerHome):
    """The tables that `access` leads to."""

    store = "postgres"
    dialects = frozenset({"postgresql"})
    look = "SELECT current_database(), to_regclass(:name::text) IS NOT NULL"
    database = "current_database()"

    def __init__(self, access: Access, push: Push) -> None:
        super().__init__(access.tables, push)
        self._access = access

    def transaction(self) -> AbstractAsyncContextManager[Connection]:
        return self._access.here.lent.transaction()

    async def apart(self, call: Call) -> Got:
        # As behind a pooler: nothing is set up on a connection that is used once.
        access = Access(self._access.address, listen=None, tables=self._tables, size=1, pooled=True, notify=False)
        try:
            return await access.here.others.run(call)
        finally:
            await access.close()

    def _named(self, table: str) -> str:
        return self._tables.quoted(table)

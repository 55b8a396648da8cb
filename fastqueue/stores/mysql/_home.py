"""Where the MySQL store's tables are, for those who push through connections of their own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, TypeAlias

from fastqueue.stores._sql import Call, Got, Steps
from fastqueue.stores.joins import Push, ServerHome
from fastqueue.stores.mysql._access import Access

if TYPE_CHECKING:
    from asyncmy.connection import Connection

__all__ = ["MySQLHome"]

Beside: TypeAlias = Callable[[Call], Steps[Got]]
"""How a call is asked beside the app's transaction, on a connection of the store's own."""


class MySQLHome(ServerHome):
    """The tables that `access` leads to."""

    store = "mysql"
    dialects = frozenset({"mysql", "mariadb"})
    look = (
        "SELECT DATABASE(), COUNT(*) FROM information_schema.tables"
        " WHERE table_schema = DATABASE() AND table_name = :name"
    )
    database = "DATABASE()"

    def __init__(self, access: Access, push: Push, beside: Beside) -> None:
        super().__init__(access.tables, push)
        self._access = access
        self._beside = beside

    def transaction(self) -> AbstractAsyncContextManager[Connection]:
        return self._access.here.lent.lent_transaction()

    async def ask(self, call: Call) -> Got:
        return await self._ask(self._access, call)

    async def apart(self, call: Call) -> Got:
        access = Access(self._access.address, tables=self._tables, size=1)
        try:
            return await self._ask(access, call)
        finally:
            await access.close()

    async def _ask(self, access: Access, call: Call) -> Got:
        return await access.each(access.here.looks, lambda: self._beside(call))

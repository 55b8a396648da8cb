"""The way from a store's parts to its database: the connections of the running event loop, and what they share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from fastqueue.stores._sql import Call, Got, Statements, Steps, Tables, run
from fastqueue.stores._sql_store import SQLAccess
from fastqueue.stores.postgres._address import Address
from fastqueue.stores.postgres._connections import Connections, Pool, executor

__all__ = ["Access"]

R = TypeVar("R")

TAG_LENGTH = 20
"""Characters of a queue's name in a notice: under 100 bytes whatever they are."""


class Access(SQLAccess):
    """A store's statements and connections.

    Args:
        address: The server.
        listen: Where notices are listened for; None: nowhere.
        tables: The names of the tables.
        size: Connections for pushes and all that is neither a claim nor an end.
        pooled: Whether a transaction-mode pooler stands between.
        notify: Whether pushes carry a notice.
    """

    def __init__(
        self, address: Address, *, listen: Address | None, tables: Tables, size: int, pooled: bool, notify: bool
    ) -> None:
        super().__init__(tables, Statements("postgres", tables))
        self.address = address
        self.identity: str | None = None
        self.ready = False
        self._listen = listen
        self._size = size
        self._pooled = pooled
        self._notify = notify
        self._connections: Connections | None = None

    @property
    def is_open(self) -> bool:
        """Whether the tables were found to be in order on the running event loop."""
        here = self._connections
        return self.ready and here is not None and here.loop is asyncio.get_running_loop()

    @property
    def here(self) -> Connections:
        """The connections of the running event loop; those of another are forgotten."""
        if self._connections is None or self._connections.loop is not asyncio.get_running_loop():
            self._connections = Connections(self.address, size=self._size, pooled=self._pooled, listen=self._listen)
            self.identity, self.ready = None, False
        return self._connections

    async def close(self) -> None:
        """Close the connections, if the running event loop has any."""
        here, self._connections = self._connections, None
        self.identity, self.ready = None, False
        if here is not None and here.loop is asyncio.get_running_loop():
            await here.close()

    async def ask(self, name: str, /, **values: Any) -> Got:
        return await self.do(name, **values)

    async def do(self, name: str, /, **values: Any) -> Got:
        return await self.do_on(self.here.others, name, **values)

    async def do_on(self, pool: Pool, name: str, /, **values: Any) -> Got:
        """Run a named statement on the connections of a pool."""
        return await pool.run(Call(self.statements[name], values))

    async def change(self, steps: Callable[[], Steps[R]]) -> R:
        async with self.here.others.borrow() as connection, connection.transaction():
            return await run(steps(), executor(connection))

    async def identify(self) -> str:
        self.here  # noqa: B018  another event loop's identity is forgotten
        if self.identity is None:
            self.identity = await super().identify()
        return self.identity

    @property
    def channel(self) -> str:
        """What notices about these tables are sent on."""
        return f"fastqueue_{self.identity}"

    def notice(self, queue: str | None) -> dict[str, str | None]:
        """The places of a statement that can carry a notice: about a queue, or None for nobody to be told."""
        wanted = self._notify and queue is not None and self.identity is not None
        return {"channel": self.channel if wanted else None, "tag": (queue or "")[:TAG_LENGTH]}

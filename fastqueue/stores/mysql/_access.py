"""The way from a store's parts to its database: statements and transactions on the running event loop."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from fastqueue.errors import StoreUnavailable
from fastqueue.stores._sql import Call, Got, Steps, Tables, run
from fastqueue.stores._sql_store import SQLAccess
from fastqueue.stores.mysql._address import Address
from fastqueue.stores.mysql._connections import Connections, Execute, Pool, contended, duplicate
from fastqueue.stores.mysql._repeats import MySQLStatements

__all__ = ["Access"]

R = TypeVar("R")

ANSWERS_WITHIN = 60.0
"""Seconds for the statements of a call, and for a connection to run them on."""

TRIES = 6
"""How often something is tried that the server refuses because others are in its way."""

PAUSE = 0.005
"""Seconds: the longest pause before the second try; it doubles with each."""


class Access(SQLAccess):
    """A store's statements and connections.

    Args:
        address: The server.
        tables: The names of the tables.
        size: Connections for pushes and all that is neither a claim nor an end.
    """

    def __init__(self, address: Address, *, tables: Tables, size: int) -> None:
        super().__init__(tables, MySQLStatements(tables))
        self.address = address
        self.identity: str | None = None
        self._size = size
        self._connections: Connections | None = None

    @property
    def here(self) -> Connections:
        """The connections of the running event loop; those of another are forgotten."""
        if self._connections is None or self._connections.loop is not asyncio.get_running_loop():
            if self._connections is not None:
                self._connections.abandon()
            self._connections = Connections(self.address, size=self._size)
            self.identity = None
        return self._connections

    async def close(self) -> None:
        """Close the connections, if the running event loop has any."""
        here, self._connections, self.identity = self._connections, None, None
        if here is None:
            return
        if here.loop is asyncio.get_running_loop():
            await here.close()
        else:
            here.abandon()

    async def ask(self, name: str, /, **values: Any) -> Got:
        return await self.do(name, **values)

    async def do(self, name: str, /, **values: Any) -> Got:
        return await self.each(self.here.others, lambda: self._one(name, values))

    def _one(self, name: str, values: dict[str, Any]) -> Steps[Got]:
        return (yield Call(self.statements[name], values))

    async def change(self, steps: Callable[[], Steps[R]]) -> R:
        return await self.together(self.here.others, steps)

    async def each(self, pool: Pool, steps: Callable[[], Steps[R]]) -> R:
        """Run statements on one connection, each by itself, on a pool with autocommit; they may be run again."""
        return await again(lambda: self._run(pool.statements(), steps()))

    async def together(self, pool: Pool, steps: Callable[[], Steps[R]]) -> R:
        """Run statements in one transaction."""
        return await again(lambda: self.once(pool, steps))

    async def once(self, pool: Pool, steps: Callable[[], Steps[R]]) -> R:
        """The same, not again when others are in the way."""
        return await self._run(pool.transaction(), steps())

    async def _run(self, borrowed: AbstractAsyncContextManager[Execute], steps: Steps[R]) -> R:
        try:
            async with asyncio.timeout(ANSWERS_WITHIN), borrowed as execute:
                return await run(steps, execute)
        except TimeoutError as error:
            raise StoreUnavailable(
                f"MySQL at {self.address.shown} is not available: no answer for {ANSWERS_WITHIN:g} s"
            ) from error

    async def identify(self) -> str:
        self.here  # noqa: B018  another event loop's identity is forgotten
        if self.identity is None:
            self.identity = await super().identify()
        return self.identity


async def again(attempt: Callable[[], Awaitable[R]]) -> R:
    """Try something, and again while the server refuses it because others are in its way, a bounded number of times.

    A transaction that was refused is undone as a whole, so the next try begins it anew. In the way are locks, and ids
    given by the server that a portion of moved jobs has brought meanwhile, or the other way round.
    """
    for tries in range(1, TRIES):
        try:
            return await attempt()
        except Exception as error:
            if not (duplicate(error) or (isinstance(error, StoreUnavailable) and contended(error))):
                raise
        await asyncio.sleep(random.uniform(0, PAUSE * 2**tries))
    return await attempt()

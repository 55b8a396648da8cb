"""Transactions on the queue's own database, for apps that hold none by a library of theirs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastqueue.errors import TwoTransactions, Unsupported

if TYPE_CHECKING:
    from fastqueue.queue import Queue

__all__ = ["Transactions"]


class Transactions:
    """Those of one queue: no task has two open, which could only wait for each other."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._open: set[asyncio.Task[Any] | None] = set()

    @asynccontextmanager
    async def begin(self) -> AsyncGenerator[Any]:
        """A transaction for the length of a block; see `Queue.transaction`."""
        joins = self._queue.store.joins
        if joins is None:
            raise Unsupported(
                f"queue.transaction(): the {self._queue.store.name} store can be part of no transaction; "
                "push by itself: await kind.push(value)"
            )
        task = asyncio.current_task()
        if task in self._open:
            raise TwoTransactions(
                "queue.transaction() inside another of this queue's: use the connection that the outer one gave; "
                "what may fail alone belongs in a savepoint on it"
            )
        await self._queue.ready()
        self._open.add(task)
        try:
            async with joins.transaction() as connection:
                yield connection
        finally:
            self._open.discard(task)

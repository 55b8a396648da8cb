"""The way from an event loop to the database: the store's thread, started by the first who opens it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from fastqueue.errors import StoreUnavailable
from fastqueue.stores._sql import Call, Got, Statements, Steps, Tables, run_sync
from fastqueue.stores._sql_store import SQLAccess
from fastqueue.stores.sqlite._database import Database, Synchronous
from fastqueue.stores.sqlite._thread import DatabaseThread, Function, Work
from fastqueue.stores.sqlite._watch import Watch

__all__ = ["Access"]

R = TypeVar("R")


class Access(SQLAccess):
    """What every part of a store reads and writes by, on any event loop and several at once.

    Args:
        path: The file, for messages.
        tables: The names of the tables.
        synchronous: As for the store.
    """

    def __init__(self, path: str, tables: Tables, synchronous: Synchronous) -> None:
        super().__init__(tables, Statements("sqlite", tables))
        self.path = path
        self.watch = Watch()
        self.connect = partial(Database, path, self.statements, synchronous)
        self._starting = threading.Lock()
        self._thread: DatabaseThread | None = None

    @property
    def is_open(self) -> bool:
        return self._thread is not None and self._thread.alive

    async def open(self) -> None:
        """Start the thread, unless it runs, and wait until it has opened the file.

        Raises:
            StoreUnavailable: the file cannot be opened, or must not be: SQLite loses commits in a process that was
                forked off one which had it open.
        """
        with self._starting:
            if self._thread is not None and self._thread.inherited:
                raise StoreUnavailable(
                    f"the SQLite store on {self.path} was open when this process was forked off; "
                    "close it before the fork, and open it in each process after"
                )
            if self._thread is None or not self._thread.alive:
                self._thread = DatabaseThread(self.connect, self.watch)
            opened = self._thread.opened
        await asyncio.shield(asyncio.wrap_future(opened))

    def stop(self) -> None:
        """Let the thread end after what it has been handed."""
        if self._thread is not None:
            self._thread.stop()

    async def close(self) -> None:
        """Let the thread end, and wait until it has closed the file."""
        thread = self._thread
        if thread is not None and thread.alive:
            thread.stop()
            await asyncio.shield(asyncio.wrap_future(thread.ended))

    async def ask(self, name: str, /, **values: Any) -> Got:
        return await self.read(lambda database: database.execute(Call(self.statements[name], values)))

    async def do(self, name: str, /, **values: Any) -> Got:
        return await self.write(lambda database: database.execute(Call(self.statements[name], values)))

    async def change(self, steps: Callable[[], Steps[R]]) -> R:
        return await self.write(lambda database: run_sync(steps(), database.execute))

    async def read(self, function: Function[R]) -> R:
        """Run a function outside any transaction."""
        return await self._ask(Work(function, writes=False, loop=asyncio.get_running_loop()))

    async def write(self, function: Function[R], *, look: Function[R | None] | None = None) -> R:
        """Run a function in a transaction; with `look`, only when that, asked first and outside it, answers None."""
        return await self._ask(Work(function, writes=True, look=look, loop=asyncio.get_running_loop()))

    def submit(self, work: Work[Any]) -> None:
        """Hand over a function; its answer comes to the work's future.

        Raises:
            StoreUnavailable: the store is not open.
        """
        thread = self._thread
        if thread is None or not thread.put(work):
            raise StoreUnavailable(f"the SQLite store on {self.path} is not open; await its open() first")

    async def _ask(self, work: Work[R]) -> R:
        self.submit(work)
        future = work.future
        assert isinstance(future, asyncio.Future)
        return await future

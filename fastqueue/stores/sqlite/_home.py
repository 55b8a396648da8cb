"""Where the SQLite store's tables are, for those who push through connections of their own."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress

from fastqueue.stores._sql import Call, Statement, Steps
from fastqueue.stores.joins import Home, Push, ended_within
from fastqueue.stores.sqlite._access import Access
from fastqueue.stores.sqlite._database import Database

__all__ = ["SQLiteHome"]

_LOOK = Statement(
    "joins.look",
    "SELECT (SELECT file FROM pragma_database_list WHERE name = 'main'),"
    " EXISTS (SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = :name)",
)


class SQLiteHome(Home):
    """The tables in the file that `access` leads to."""

    store = "sqlite"
    dialects = frozenset({"sqlite"})

    def __init__(self, access: Access, push: Push) -> None:
        super().__init__(access.tables, push)
        self._access = access

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[sqlite3.Connection]:
        database = self._access.connect(movable=True)
        committed: asyncio.Future[None] | None = None
        try:
            await database.begin_on_loop()
            yield database.connection
            if not database.in_transaction:
                raise ended_within()
            committed = _in_a_thread(database.commit)
            await asyncio.shield(committed)
        finally:
            if committed is None or committed.done():
                _end(database)
            else:  # cancelled: it goes on to its end
                committed.add_done_callback(lambda _: _end(database))

    def _check(self) -> Steps[None]:
        ((file, there),) = (yield Call(_LOOK, {"name": self._tables.name("jobs")})).rows
        file = os.fsdecode(file)
        if not _same_file(file, self._access.path):
            raise self._elsewhere("a connection", file or "a database in memory", self._access.path)
        if not there:
            raise self._missing(file)


def _same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _in_a_thread(commit: Callable[[], None]) -> asyncio.Future[None]:
    """Run a commit, which waits for the disk, in a thread that nobody else can hold up while this has the lock."""
    thread = ThreadPoolExecutor(1, thread_name_prefix="fastqueue-commit")
    try:
        return asyncio.get_running_loop().run_in_executor(thread, commit)
    finally:
        thread.shutdown(wait=False)


def _end(database: Database) -> None:
    with suppress(sqlite3.Error):
        database.roll_back()
    database.close()

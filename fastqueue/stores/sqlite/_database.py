"""A database file, opened: its connection, the statements for its tables, and its errors in words."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypeVar

from fastqueue.errors import MissingDriver, StoreUnavailable
from fastqueue.stores._sql import Call, Got, Statements

__all__ = ["Database", "Synchronous"]

R = TypeVar("R")

Synchronous: TypeAlias = Literal["FULL", "NORMAL"]

OLDEST = (3, 38)
"""The first SQLite that has all that the statements use, JSON lists among it."""

PATIENCE = 30.0
"""Seconds to wait for other connections before giving up."""

_REMEDIES = {
    sqlite3.SQLITE_BUSY: f"another connection kept it locked for {PATIENCE:g} s; keep the app's own writing "
    "transactions short, and begin them with BEGIN IMMEDIATE",
    sqlite3.SQLITE_CANTOPEN: "its folder must exist, and this process must be allowed to make files there",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; put a backup in its place",
    sqlite3.SQLITE_FULL: "there is no room left on its disk; make some",
    sqlite3.SQLITE_IOERR: "its disk failed; look into the system's log",
    sqlite3.SQLITE_NOTADB: "the file is something else, or encrypted; give the store a path of its own",
    sqlite3.SQLITE_PERM: "this process must be allowed to read and write it",
    sqlite3.SQLITE_READONLY: "this process must be allowed to write the file and its folder",
}


class Database:
    """One connection to a file, in the thread that made it, or in one after the other if `movable`.

    SQLite's own way to wait for a lock sleeps for up to 100 ms, so that who waits is overtaken again and again; it is
    switched off, and whatever may meet another's lock waits in short random sleeps (`patiently`).
    """

    def __init__(self, path: str, statements: Statements, synchronous: Synchronous, *, movable: bool = False) -> None:
        if sqlite3.sqlite_version_info < OLDEST:
            raise MissingDriver(
                f"the SQLite store needs SQLite {OLDEST[0]}.{OLDEST[1]} or newer, and this Python was built with "
                f"{sqlite3.sqlite_version}; use another build of Python"
            )
        self.path = path
        self._texts = {statement.name: statement.text for statement in statements}
        try:
            self._connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=not movable)
        except sqlite3.Error as error:
            raise self.in_words(error) from error
        try:
            self.patiently(self._write_ahead)
            self._connection.execute(f"PRAGMA synchronous = {synchronous}")
        except sqlite3.Error as error:
            self._connection.close()
            raise self.in_words(error) from error

    def _write_ahead(self) -> None:
        (mode,) = self._connection.execute("PRAGMA journal_mode").fetchone()
        if mode != "wal":
            self._connection.execute("PRAGMA journal_mode = WAL")

    def do(self, step: str, /, **values: Any) -> sqlite3.Cursor:
        """Run a statement by its name."""
        return self._connection.execute(self._texts[step], values)

    def execute(self, call: Call) -> Got:
        """Run a statement that a verb asks for."""
        # By place: SQLite finds each name by going through all of them, which many rows would feel.
        cursor = self._connection.execute(*call.statement.bind("qmark", call.values))
        return Got(cursor.fetchall(), cursor.rowcount, cursor.lastrowid)

    @property
    def connection(self) -> sqlite3.Connection:
        """The driver's own, to be lent for a transaction."""
        return self._connection

    def begin(self) -> None:
        """Begin to write: the lock is taken now, so that nothing that was read before can turn out old."""
        self._connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def roll_back(self) -> None:
        """Undo the transaction, unless SQLite has done so itself, as it does when the disk is full."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def apart(self, function: Callable[[Database], R]) -> R:
        """Run a function within the transaction so that its failure undoes what it did and nothing else."""
        self._connection.execute("SAVEPOINT apart")
        try:
            answer = function(self)
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO apart")
                self._connection.execute("RELEASE apart")
            raise
        self._connection.execute("RELEASE apart")
        return answer

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def version(self) -> int:
        """A number that changes when another connection has committed, of this process or any other."""
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    def writes_by(self) -> tuple[str, str]:
        """The journal's mode and how writes are synchronised, as SQLite names them."""
        (mode,) = self._connection.execute("PRAGMA journal_mode").fetchone()
        (level,) = self._connection.execute("PRAGMA synchronous").fetchone()
        return str(mode), ("OFF", "NORMAL", "FULL", "EXTRA")[level]

    def close(self) -> None:
        self._connection.close()

    def patiently(self, function: Callable[[], R]) -> R:
        """Do what may meet another connection's lock, again until there is none."""
        give_up = time.monotonic() + PATIENCE
        while True:
            try:
                return function()
            except sqlite3.OperationalError as error:
                pause = _pause(error, give_up)
            time.sleep(pause)

    async def begin_on_loop(self) -> None:
        """Begin to write, without holding up the event loop while another connection has the lock.

        Raises:
            StoreUnavailable: it had the lock for too long.
        """
        give_up = time.monotonic() + PATIENCE
        while True:
            try:
                return self.begin()
            except sqlite3.Error as error:
                try:
                    pause = _pause(error, give_up)
                except sqlite3.Error:
                    raise self.in_words(error) from error
            await asyncio.sleep(pause)

    def in_words(self, error: Exception) -> Exception:
        """What the caller is told of an error: the file and the remedy when it is the file's, else the error itself."""
        remedy = _REMEDIES.get(_code(error))
        if remedy is None:
            return error
        told = StoreUnavailable(f"the SQLite file {self.path}: {error}; {remedy}")
        told.__cause__ = error
        return told


def _pause(error: sqlite3.Error, give_up: float) -> float:
    """Seconds until the next try, when another connection had the lock and there is time for one; else it raises."""
    if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= give_up:
        raise error
    return random.uniform(0.002, 0.012)


def _code(error: Exception) -> int:
    """SQLite's number for an error, without its finer part; 0: it is not SQLite's."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF

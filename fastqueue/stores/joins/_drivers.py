"""A store on a transaction that the app holds by a driver's own connection.

Whether a statement now would be part of a transaction is not what a driver answers when it is asked whether it is in
one: most begin with the first statement, and say no until then. And whatever cursors and rows the app has chosen for
its own statements, these want plain ones.
"""

from __future__ import annotations

import sqlite3
import sys
from abc import abstractmethod
from collections.abc import Callable, MutableMapping, Sequence
from contextlib import closing, suppress
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from fastqueue.errors import TransactionRefused, WrongPlace
from fastqueue.job import Moment, NewJob, Pushed
from fastqueue.store import Enlisted
from fastqueue.stores._sql import Call, Got, run, run_sync
from fastqueue.stores.joins._homes import Home
from fastqueue.stores.joins._waiting import wait_for

__all__ = [
    "Aiomysql",
    "Aiosqlite",
    "AsyncPsycopg",
    "Asyncmy",
    "Asyncpg",
    "InDriver",
    "Psycopg",
    "SQLite",
    "no_push_sync",
    "sqlite_fault",
]

_known: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()
"""What is remembered of each connection for as long as it lives."""


class InDriver(Enlisted):
    """A store on a driver's own connection.

    Attributes:
        name: What messages call the connection.
        dialects: What SQLAlchemy calls the databases that it may lead to.
    """

    name: ClassVar[str]
    dialects: ClassVar[frozenset[str]]

    def __init__(self, home: Home, connection: Any) -> None:
        home.refuse_other(self.dialects, self.name)
        self._home = home
        self._connection = connection

    def after_commit(self, wake: Callable[[], None], *, pushed: int) -> bool:
        return wait_for(self._connection, wake, pushed=pushed)

    @abstractmethod
    def _fault(self) -> str | None:
        """Why a statement now would not be part of a transaction that can be committed; None: it would."""

    def _refuse(self) -> None:
        fault = self._fault()
        if fault is not None:
            raise TransactionRefused(f"in_() was given {self.name} {fault}")

    def _remembered(self) -> MutableMapping[Any, Any]:
        try:
            return _known.setdefault(self._connection, {})
        except TypeError:  # sqlite3's own connections take no weak reference
            return {}


class Awaited(InDriver):
    """One whose calls are awaited."""

    sync = False

    async def push(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        return await run(self._home.steps(jobs, now, self._remembered()), self._run)

    def push_sync(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        raise no_push_sync(self.name)

    async def _run(self, call: Call) -> Got:
        if call.fresh:
            return await self._home.ask(call)
        self._refuse()
        return await self._execute(call)

    @abstractmethod
    async def _execute(self, call: Call) -> Got: ...


class Plain(InDriver):
    """One of plain calls."""

    sync = True

    async def push(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        return self.push_sync(jobs, now=now)

    def push_sync(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        return run_sync(self._home.steps(jobs, now, self._remembered()), self._run)

    def _run(self, call: Call) -> Got:
        if call.fresh:
            return self._home.ask_sync(call)
        self._refuse()
        return self._execute(call)

    @abstractmethod
    def _execute(self, call: Call) -> Got: ...


def no_push_sync(what: str) -> WrongPlace:
    """The refusal of a plain call where only awaited ones are."""
    return WrongPlace(
        f"push_sync was called in the transaction of {what}, whose calls are awaited: "
        "write `await ... .push(...)`, or give in_() a sync session or connection"
    )


class Asyncpg(Awaited):
    """asyncpg's connections, and what its pool gives for them."""

    name = "an asyncpg connection"
    dialects = frozenset({"postgresql"})

    def _fault(self) -> str | None:
        if self._connection.is_in_transaction():
            return None
        return "with no transaction open: open one by `async with connection.transaction():`"

    async def _execute(self, call: Call) -> Got:
        text, values = call.statement.bind("numeric", call.values)
        rows = await self._connection.fetch(text, *values)
        return Got(rows, len(rows))

    def _remembered(self) -> MutableMapping[Any, Any]:
        # What the pool gives is new each time and takes no weak reference; the connection behind it stays.
        return _known.setdefault(getattr(self._connection, "_con", self._connection), {})


def _psycopg_fault(connection: Any) -> str | None:
    state = connection.info.transaction_status.name
    if state == "INERROR":
        return "whose transaction has failed already: roll it back, and push in the next"
    if state == "IDLE" and connection.autocommit:
        return "in autocommit with no transaction open: open one by `with connection.transaction():`"
    return None


class Psycopg(Plain):
    """psycopg's sync connections."""

    name = "a psycopg connection"
    dialects = frozenset({"postgresql"})

    def _fault(self) -> str | None:
        return _psycopg_fault(self._connection)

    def _execute(self, call: Call) -> Got:
        psycopg = sys.modules["psycopg"]
        with psycopg.Cursor(self._connection, row_factory=psycopg.rows.tuple_row) as cursor:
            cursor.execute(*call.statement.bind("format", call.values))
            return Got(cursor.fetchall(), cursor.rowcount)


class AsyncPsycopg(Awaited):
    """psycopg's async connections."""

    name = "a psycopg connection"
    dialects = frozenset({"postgresql"})

    def _fault(self) -> str | None:
        return _psycopg_fault(self._connection)

    async def _execute(self, call: Call) -> Got:
        psycopg = sys.modules["psycopg"]
        async with psycopg.AsyncCursor(self._connection, row_factory=psycopg.rows.tuple_row) as cursor:
            await cursor.execute(*call.statement.bind("format", call.values))
            return Got(await cursor.fetchall(), cursor.rowcount)


def sqlite_fault(connection: Any, autocommit: object) -> str | None:
    """Why a statement on a connection of sqlite3's would be kept without a commit; None: it would not.

    Args:
        autocommit: What it says of its `autocommit`, which it has from Python 3.12 on.
    """
    if connection.in_transaction or (connection.isolation_level is not None and autocommit is not True):
        return None
    return "in autocommit with no transaction open: begin one by `BEGIN IMMEDIATE`"


class SQLite(Plain):
    """sqlite3's connections, in the thread that may use them."""

    name = "a sqlite3 connection"
    dialects = frozenset({"sqlite"})

    def _fault(self) -> str | None:
        return sqlite_fault(self._connection, getattr(self._connection, "autocommit", None))

    def _execute(self, call: Call) -> Got:
        with closing(self._connection.cursor()) as cursor:
            cursor.row_factory = None
            cursor.execute(*call.statement.bind("qmark", call.values))
            return Got(cursor.fetchall(), cursor.rowcount, cursor.lastrowid)


class Aiosqlite(Awaited):
    """aiosqlite's connections."""

    name = "an aiosqlite connection"
    dialects = frozenset({"sqlite"})
    _autocommit: object = None

    async def push(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        if hasattr(sqlite3.Connection, "autocommit"):
            # The connection behind it says so in its own thread alone, to which there is no public way.
            with suppress(AttributeError):
                self._autocommit = await self._connection._execute(getattr, self._connection._conn, "autocommit")
        return await super().push(jobs, now=now)

    def _fault(self) -> str | None:
        return sqlite_fault(self._connection, self._autocommit)

    async def _execute(self, call: Call) -> Got:
        async with self._connection.cursor() as cursor:
            cursor.row_factory = None
            await cursor.execute(*call.statement.bind("qmark", call.values))
            return Got(list(await cursor.fetchall()), cursor.rowcount, cursor.lastrowid)


class _MySQL(Awaited):
    dialects = frozenset({"mysql", "mariadb"})
    cursors: ClassVar[str]

    def _fault(self) -> str | None:
        if self._connection.get_transaction_status() or not self._connection.get_autocommit():
            return None
        return "in autocommit with no transaction open: open one by `await connection.begin()`"

    async def _execute(self, call: Call) -> Got:
        async with self._connection.cursor(sys.modules[self.cursors].Cursor) as cursor:
            await cursor.execute(*call.statement.bind("format", call.values))
            return Got(await cursor.fetchall(), cursor.rowcount, cursor.lastrowid)


class Asyncmy(_MySQL):
    """asyncmy's connections."""

    name = "an asyncmy connection"
    cursors = "asyncmy.cursors"


class Aiomysql(_MySQL):
    """aiomysql's connections."""

    name = "an aiomysql connection"
    cursors = "aiomysql.cursors"

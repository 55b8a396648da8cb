"""A store on a transaction that the app holds by a session or connection of SQLAlchemy's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastqueue.errors import TransactionRefused
from fastqueue.job import Moment, NewJob, Pushed
from fastqueue.store import Enlisted
from fastqueue.stores._sql import Call, Got, Style, run_sync
from fastqueue.stores.joins._commits import after_commit
from fastqueue.stores.joins._drivers import no_push_sync, sqlite_fault
from fastqueue.stores.joins._handles import article, session_of
from fastqueue.stores.joins._homes import Home

__all__ = ["InSQLAlchemy"]

_STYLES: Mapping[str, Style] = {
    "numeric_dollar": "numeric",
    "qmark": "qmark",
    "format": "format",
    "pyformat": "format",
}
"""How statements are written for a driver, by what its dialect says of it."""


class InSQLAlchemy(Enlisted):
    """A store on a session or connection, async or sync.

    SQLAlchemy is plain calls within, which an async handle runs where they can wait. Statements go through it and never
    to the driver's connection: that is in no transaction until SQLAlchemy has sent a first statement.

    Args:
        handle: What the app holds.
        plain: The same, or what is behind it where its calls are awaited.
    """

    def __init__(self, home: Home, handle: Any, plain: Any) -> None:
        self.sync = handle is plain
        self._home = home
        self._handle = handle
        self._plain = plain

    async def push(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        if self.sync:
            return self._push(self._plain, jobs, now)
        pushed: list[Pushed] = await self._handle.run_sync(self._push, jobs, now)
        return pushed

    def push_sync(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        if not self.sync:
            raise no_push_sync(self._what)
        return self._push(self._plain, jobs, now)

    def after_commit(self, wake: Callable[[], None], *, pushed: int) -> bool:
        return after_commit(self._handle, wake, pushed=pushed)

    def _push(self, plain: Any, jobs: Sequence[NewJob], now: Moment) -> list[Pushed]:
        connection = plain if session_of(plain) is None else self._connection(plain)
        self._home.refuse_other(frozenset({connection.dialect.name}), self._what)
        if _is_autocommit(connection):
            raise self._refusal(
                "in autocommit, where a job would stay when the rest is rolled back: "
                "use an engine with another isolation_level"
            )
        style = _STYLES[connection.dialect.paramstyle]

        def execute(call: Call) -> Got:
            if call.fresh:
                return self._beside(connection, call)
            result = connection.exec_driver_sql(*call.statement.bind(style, call.values))
            if result.returns_rows:
                return Got(result.fetchall(), result.rowcount)
            return Got((), result.rowcount, result.lastrowid)

        return run_sync(self._home.steps(jobs, now, connection.info), execute)

    def _connection(self, session: Any) -> Any:
        """The connection of a session's transaction, which begins now if it has not."""
        if not session.in_transaction() and not session.autobegin:
            raise self._refusal("that has not begun: push within `with session.begin():`")
        try:
            return session.connection()
        except sys.modules["sqlalchemy"].exc.UnboundExecutionError as error:
            raise self._refusal(
                "which does not say which of its engines is meant: "
                "give in_() the connection, as session.connection(bind_arguments=...) answers it"
            ) from error

    def _beside(self, connection: Any, call: Call) -> Got:
        if self.sync:
            return self._home.ask_sync(call)

        async def ask(_driver_connection: object) -> Got:
            return await self._home.ask(call)

        got: Got = connection.connection.dbapi_connection.run_async(ask)
        return got

    @property
    def _what(self) -> str:
        return article(type(self._handle).__name__)

    def _refusal(self, reason: str) -> TransactionRefused:
        return TransactionRefused(f"in_() was given {self._what} {reason}")


def _is_autocommit(connection: Any) -> bool:
    """Whether each statement is kept by itself, whatever SQLAlchemy says of a transaction."""
    raw = connection.connection
    driver = raw.driver_connection
    if hasattr(driver, "in_transaction"):
        # SQLite's, with autocommit turned off in SQLAlchemy's own way, or by events that say BEGIN themselves.
        return sqlite_fault(driver, getattr(driver, "autocommit", None)) is not None
    asked = getattr(raw.dbapi_connection, "get_autocommit", None)
    return bool(asked() if asked else raw.dbapi_connection.autocommit)

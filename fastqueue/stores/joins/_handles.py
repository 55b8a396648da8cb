"""Which object the app holds its transaction by, and what is wrong with those that are no open transaction."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias, get_origin

from fastqueue.errors import TransactionRefused
from fastqueue.stores.joins._drivers import (
    Aiomysql,
    Aiosqlite,
    Asyncmy,
    Asyncpg,
    AsyncPsycopg,
    InDriver,
    Psycopg,
    SQLite,
)

__all__ = ["article", "driver_of", "plain_of", "refusal", "session_of", "unwrapped"]

Class: TypeAlias = tuple[str, str]
"""A class by its module and name."""

_SCOPED: Sequence[Class] = (("sqlalchemy.orm", "scoped_session"), ("sqlalchemy.ext.asyncio", "async_scoped_session"))
_ASYNC_SESSION: Class = ("sqlalchemy.ext.asyncio", "AsyncSession")
_ASYNC_CONNECTION: Class = ("sqlalchemy.ext.asyncio", "AsyncConnection")
_SESSION: Class = ("sqlalchemy.orm", "Session")
_CONNECTION: Class = ("sqlalchemy.engine", "Connection")

_DRIVERS: Sequence[tuple[Class, type[InDriver]]] = (
    (("asyncpg", "Connection"), Asyncpg),
    (("psycopg", "AsyncConnection"), AsyncPsycopg),
    (("psycopg", "Connection"), Psycopg),
    (("aiosqlite", "Connection"), Aiosqlite),
    (("sqlite3", "Connection"), SQLite),
    (("asyncmy.connection", "Connection"), Asyncmy),
    (("aiomysql", "Connection"), Aiomysql),
)

_ENGINE = "which has no transaction: give it the connection that engine.begin() answers"
_MAKER = "which makes sessions and is none: call it, and give in_() what it makes"
_POOL = "which has no transaction: acquire a connection, open a transaction on it, and give in_() the connection"
_MARKER = "which asks FastAPI for a session and is none: write `jobs = transactional(queue, SessionDep)` for that"
_TRANSACTION = "which ends a transaction: give in_() the session or connection that it was begun on"
_UNOPENED = "which is not open yet: enter it by `async with`, and give in_() what that answers"
_NOTHING = (
    "which is neither a session or connection of SQLAlchemy's nor a connection of asyncpg's, psycopg's, aiosqlite's, "
    "sqlite3's, asyncmy's or aiomysql's: give it one of these, with a transaction open"
)

_MISTAKES: Sequence[tuple[Class, str]] = (
    (("sqlalchemy.engine", "Engine"), _ENGINE),
    (("sqlalchemy.ext.asyncio", "AsyncEngine"), _ENGINE),
    (("sqlalchemy.orm", "sessionmaker"), _MAKER),
    (("sqlalchemy.ext.asyncio", "async_sessionmaker"), _MAKER),
    (("asyncpg", "Pool"), _POOL),
    (("psycopg_pool", "ConnectionPool"), _POOL),
    (("psycopg_pool", "AsyncConnectionPool"), _POOL),
    (("asyncmy", "Pool"), _POOL),
    (("aiomysql", "Pool"), _POOL),
    (("fastapi.params", "Depends"), _MARKER),
    (("sqlalchemy.engine", "Transaction"), _TRANSACTION),
    (("sqlalchemy.orm", "SessionTransaction"), _TRANSACTION),
    (("sqlalchemy.ext.asyncio", "AsyncTransaction"), _TRANSACTION),
    (("sqlalchemy.ext.asyncio", "AsyncSessionTransaction"), _TRANSACTION),
    (("asyncpg.transaction", "Transaction"), _TRANSACTION),
    (("psycopg", "Transaction"), _TRANSACTION),
    (("psycopg", "AsyncTransaction"), _TRANSACTION),
    (_ASYNC_CONNECTION, _UNOPENED),
    (("builtins", "object"), _NOTHING),
)


def unwrapped(handle: Any) -> Any:
    """The handle itself, for one that stands for the handle of each thread or task."""
    return handle.registry() if any(_is_a(handle, scoped) for scoped in _SCOPED) else handle


def plain_of(handle: Any) -> Any:
    """The session or connection of SQLAlchemy's that is the handle, or is behind an awaited one; None: neither."""
    if _is_a(handle, _ASYNC_SESSION):
        return handle.sync_session
    if _is_a(handle, _ASYNC_CONNECTION):
        return handle.sync_connection
    return handle if _is_a(handle, _SESSION) or _is_a(handle, _CONNECTION) else None


def session_of(handle: object) -> Any:
    """The session of SQLAlchemy's that a handle is, or is a face of; None: it is none."""
    plain = plain_of(unwrapped(handle))
    return plain if _is_a(plain, _SESSION) else None


def driver_of(handle: object) -> type[InDriver] | None:
    """How a store is put on a driver's own connection; None: the handle is none."""
    return next((driver for known, driver in _DRIVERS if _is_a(handle, known)), None)


def refusal(handle: object) -> TransactionRefused:
    """What to tell who gave something that is neither."""
    if get_origin(handle) is Annotated:
        return TransactionRefused(f"in_() was given an Annotated, {_MARKER}")
    mistake = next(mistake for known, mistake in _MISTAKES if _is_a(handle, known))
    return TransactionRefused(f"in_() was given {article(type(handle).__name__)}, {mistake}")


def article(name: str) -> str:
    """A class's name as a sentence takes it."""
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _is_a(handle: object, known: Class) -> bool:
    """Whether an object is of a class, which cannot be if the module of the class was never loaded."""
    module, name = known
    found = getattr(sys.modules.get(module), name, None)
    return found is not None and isinstance(handle, found)

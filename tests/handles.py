"""Every way in which an app may hold a transaction, by the store whose database it reaches."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import aiomysql
import aiosqlite
import asyncmy
import asyncpg
import psycopg
import sqlmodel
import sqlmodel.ext.asyncio.session
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from fastqueue.store import Store
from fastqueue.stores.mysql import MySQLStore
from fastqueue.stores.postgres import PostgresStore
from fastqueue.stores.sqlite import SQLiteStore

__all__ = [
    "HANDLES",
    "Held",
    "arguments_of",
    "async_engine",
    "begin_immediate",
    "path_of",
    "store_at",
    "sync_engine",
]


@dataclass
class Held:
    """A transaction of the app's, begun or about to be.

    Attributes:
        handle: What `in_` is given.
        execute: Runs a statement of the app's in it.
        begin_nested: Sets a savepoint, and answers what ends it; None: by statements.
    """

    handle: Any
    execute: Callable[[str], Awaitable[Any]]
    commit: Callable[[], Awaitable[Any]]
    rollback: Callable[[], Awaitable[Any]]
    begin_nested: Callable[[], Awaitable[Any]] | None = None

    async def savepoint(self) -> Savepoint:
        if self.begin_nested is not None:
            begun = await self.begin_nested()
            return Savepoint(begun.commit, begun.rollback)
        await self.execute("SAVEPOINT here")
        return Savepoint(
            lambda: self.execute("RELEASE SAVEPOINT here"), lambda: self.execute("ROLLBACK TO SAVEPOINT here")
        )


@dataclass
class Savepoint:
    """What releases a savepoint, and what rolls back to it."""

    commit: Callable[[], Awaitable[Any]]
    rollback: Callable[[], Awaitable[Any]]


Hold: TypeAlias = Callable[[str], AbstractAsyncContextManager[Held]]
"""From the URL of a database to a transaction on it, which is closed without a commit at the end."""

HANDLES: dict[tuple[str, str], Hold] = {}
"""By the store, and the words for the handle."""


def awaited(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """A plain function as one that is awaited."""

    async def call(*arguments: Any) -> Any:
        return function(*arguments)

    return call


def hold(store: str, words: str) -> Callable[[Callable[[str], AsyncGenerator[Held]]], None]:
    def add(function: Callable[[str], AsyncGenerator[Held]]) -> None:
        HANDLES[store, words] = asynccontextmanager(function)

    return add


def store_at(name: str, url: str) -> Store:
    """The store of a name at the URL of a database."""
    if name == "sqlite":
        return SQLiteStore(path_of(url), synchronous="NORMAL")
    return PostgresStore(url) if name == "postgres" else MySQLStore(url)


def path_of(url: str) -> str:
    return url.removeprefix("sqlite:///")


def arguments_of(url: str) -> dict[str, Any]:
    """The arguments of MySQL drivers, which read no URLs."""
    parts = urlsplit(url)
    return {
        "host": parts.hostname,
        "port": parts.port or 3306,
        "user": parts.username,
        "password": parts.password or "",
        "db": parts.path.lstrip("/"),
    }


@hold("sqlite", "sqlite3")
async def hold_sqlite3(url: str) -> AsyncGenerator[Held]:
    with closing(sqlite3.connect(path_of(url))) as connection:
        yield Held(connection, awaited(connection.execute), awaited(connection.commit), awaited(connection.rollback))


@hold("sqlite", "aiosqlite")
async def hold_aiosqlite(url: str) -> AsyncGenerator[Held]:
    async with aiosqlite.connect(path_of(url)) as connection:
        yield Held(connection, connection.execute, connection.commit, connection.rollback)


@hold("postgres", "asyncpg")
async def hold_asyncpg(url: str) -> AsyncGenerator[Held]:
    connection = await asyncpg.connect(url)
    try:
        transaction = connection.transaction()
        await transaction.start()
        yield Held(connection, connection.execute, transaction.commit, transaction.rollback)
    finally:
        await connection.close()


@hold("postgres", "asyncpg, from its pool")
async def hold_asyncpg_pool(url: str) -> AsyncGenerator[Held]:
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool, pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        yield Held(connection, connection.execute, transaction.commit, transaction.rollback)


@hold("postgres", "psycopg, async")
async def hold_psycopg_async(url: str) -> AsyncGenerator[Held]:
    connection: Any = await psycopg.AsyncConnection.connect(url)
    try:
        yield Held(connection, connection.execute, connection.commit, connection.rollback)
    finally:
        await connection.close()


@hold("postgres", "psycopg")
async def hold_psycopg(url: str) -> AsyncGenerator[Held]:
    with closing(psycopg.connect(url)) as connection:
        yield Held(connection, awaited(connection.execute), awaited(connection.commit), awaited(connection.rollback))


def hold_mysql(driver: Any, words: str) -> None:
    async def held(url: str) -> AsyncGenerator[Held]:
        connection = await driver.connect(**arguments_of(url))
        try:

            async def execute(sql: str) -> None:
                async with connection.cursor() as cursor:
                    await cursor.execute(sql)

            yield Held(connection, execute, connection.commit, connection.rollback)
        finally:
            await connection.ensure_closed()

    hold("mysql", words)(held)


hold_mysql(asyncmy, "asyncmy")
hold_mysql(aiomysql, "aiomysql")


def of_async(handle: Any) -> Held:
    """An async session or connection of SQLAlchemy's."""

    async def begin_nested() -> Any:
        return await handle.begin_nested()

    execute = getattr(handle, "exec", handle.execute)  # SQLModel warns of the other
    return Held(handle, lambda sql: execute(text(sql)), handle.commit, handle.rollback, begin_nested)


def of_sync(handle: Any) -> Held:
    """A sync one."""

    async def begin_nested() -> Any:
        begun = handle.begin_nested()
        return Savepoint(awaited(begun.commit), awaited(begun.rollback))

    execute = getattr(handle, "exec", handle.execute)

    async def run(sql: str) -> None:
        execute(text(sql))

    return Held(handle, run, awaited(handle.commit), awaited(handle.rollback), begin_nested)


def begin_immediate(engine: AsyncEngine) -> None:
    """Let every SQLite transaction begin when SQLAlchemy says so, and take the lock at once: as the page tells it."""

    @event.listens_for(engine.sync_engine, "connect")
    def let_events_begin(connection: Any, _: object) -> None:
        connection.isolation_level = None

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


@asynccontextmanager
async def async_engine(url: str, driver: str) -> AsyncGenerator[AsyncEngine]:
    engine = create_async_engine(url.replace("://", f"+{driver}://", 1))
    try:
        yield engine
    finally:
        await engine.dispose()


@contextmanager
def sync_engine(url: str, driver: str) -> Generator[Engine]:
    engine = create_engine(url.replace("://", f"+{driver}://", 1))
    try:
        yield engine
    finally:
        engine.dispose()


def hold_async(store: str, driver: str, *, more: bool = False) -> None:
    """What an async engine is used by; `more`: also what is one of these in other words."""

    async def session(url: str) -> AsyncGenerator[Held]:
        async with async_engine(url, driver) as engine, AsyncSession(engine) as session:
            yield of_async(session)

    async def connection(url: str) -> AsyncGenerator[Held]:
        async with async_engine(url, driver) as engine, engine.connect() as connection:
            yield of_async(connection)

    async def of_sqlmodel(url: str) -> AsyncGenerator[Held]:
        async with async_engine(url, driver) as engine, sqlmodel.ext.asyncio.session.AsyncSession(engine) as session:
            yield of_async(session)

    async def scoped(url: str) -> AsyncGenerator[Held]:
        async with async_engine(url, driver) as engine:
            sessions = async_scoped_session(async_sessionmaker(engine), scopefunc=lambda: None)
            try:
                yield of_async(sessions)
            finally:
                await sessions.remove()

    hold(store, f"AsyncSession, {driver}")(session)
    hold(store, f"AsyncConnection, {driver}")(connection)
    if more:
        hold(store, f"SQLModel's AsyncSession, {driver}")(of_sqlmodel)
        hold(store, f"async_scoped_session, {driver}")(scoped)


def hold_sync(store: str, driver: str, *, more: bool = False) -> None:
    """What a sync engine is used by."""

    async def session(url: str) -> AsyncGenerator[Held]:
        with sync_engine(url, driver) as engine, Session(engine) as session:
            yield of_sync(session)

    async def connection(url: str) -> AsyncGenerator[Held]:
        with sync_engine(url, driver) as engine, engine.connect() as connection:
            yield of_sync(connection)

    async def of_sqlmodel(url: str) -> AsyncGenerator[Held]:
        with sync_engine(url, driver) as engine, sqlmodel.Session(engine) as session:
            yield of_sync(session)

    async def scoped(url: str) -> AsyncGenerator[Held]:
        with sync_engine(url, driver) as engine:
            sessions = scoped_session(sessionmaker(engine))
            try:
                yield of_sync(sessions)
            finally:
                sessions.remove()

    hold(store, f"Session, {driver}")(session)
    hold(store, f"Connection, {driver}")(connection)
    if more:
        hold(store, f"SQLModel's Session, {driver}")(of_sqlmodel)
        hold(store, f"scoped_session, {driver}")(scoped)


hold_async("sqlite", "aiosqlite", more=True)
hold_sync("sqlite", "pysqlite", more=True)
hold_async("postgres", "asyncpg", more=True)
hold_async("postgres", "psycopg")
hold_sync("postgres", "psycopg")
hold_async("mysql", "asyncmy")
hold_async("mysql", "aiomysql")
hold_sync("mysql", "pymysql")

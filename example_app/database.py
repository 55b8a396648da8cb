"""The app's database, and the transaction that a request has on it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import Depends, Request
from sqlalchemy import Connection, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine

from example_app.models import Base

__all__ = ["Database", "DatabaseDep", "SessionDep"]

_DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg", "mysql": "mysql+asyncmy"}


class Database:
    """The engine, and sessions on it. Nothing is connected to before `open`.

    Args:
        url: As in DATABASE_URL; a driver named in it is passed over.
    """

    def __init__(self, url: str) -> None:
        self.engine = _engine(make_url(url))
        self.sessions = async_sessionmaker(self.engine, expire_on_commit=False)

    async def open(self) -> None:
        """Make the tables that are not there yet."""
        try:
            await self._make_tables()
        except DBAPIError:
            # Another instance that starts now may have made them first; a real fault comes again.
            await self._make_tables()

    async def close(self) -> None:
        """Close every connection."""
        await self.engine.dispose()

    async def _make_tables(self) -> None:
        async with self.engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)


def _engine(url: URL) -> AsyncEngine:
    backend = url.get_backend_name()
    engine = create_async_engine(url.set(drivername=_DRIVERS[backend]), pool_pre_ping=backend != "sqlite")
    if backend == "sqlite":
        event.listen(engine.sync_engine, "connect", _set_up_sqlite)
        event.listen(engine.sync_engine, "begin", _begin_immediate)
    return engine


def _set_up_sqlite(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA busy_timeout = 10000")
    cursor.close()


def _begin_immediate(connection: Connection) -> None:
    # A transaction that reads first and writes later is refused at once (SQLITE_BUSY_SNAPSHOT) when another has
    # written in between, whatever the busy timeout. One that takes the write lock first waits for its turn.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _database(request: Request) -> Database:
    database: Database = request.app.state.database
    return database


DatabaseDep = Annotated[Database, Depends(_database)]


async def _session(database: DatabaseDep) -> AsyncGenerator[AsyncSession]:
    async with database.sessions.begin() as session:
        yield session


SessionDep = Annotated[AsyncSession, Depends(_session, scope="function")]
"""The request's transaction: committed before the response is sent, gone when the route raises."""

"""What is no open transaction on the queue's own database is refused, with the remedy, before anything is written."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Annotated, Any

import aiomysql
import aiosqlite
import asyncmy
import asyncpg
import psycopg
import pytest
from fastapi import Depends
from sqlalchemy import create_engine, event, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker

from fastqueue.errors import TransactionRefused, WrongPlace
from fastqueue.job import NewJob, Pushed
from fastqueue.store import Joins, Store
from fastqueue.stores.mysql import MySQLStore
from fastqueue.stores.postgres import PostgresStore
from fastqueue.stores.sqlite import SQLiteStore
from tests.handles import arguments_of, async_engine, path_of, store_at, sync_engine
from tests.servers import mysql, postgres

JOB = NewJob(kind="mail", payload="1", run_at=0)
NOWHERE = "postgresql://app:secret@localhost:1/app"


@asynccontextmanager
async def opened(store: Store) -> AsyncGenerator[Store]:
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
async def lite(sqlite_url: str) -> AsyncGenerator[Store]:
    async with opened(SQLiteStore(path_of(sqlite_url))) as store:
        yield store


@pytest.fixture
async def pg(postgres_url: str) -> AsyncGenerator[Store]:
    async with opened(PostgresStore(postgres_url)) as store:
        yield store


@pytest.fixture
async def my(mysql_url: str) -> AsyncGenerator[Store]:
    async with opened(MySQLStore(mysql_url)) as store:
        yield store


def joins_of(store: Store) -> Joins:
    assert store.joins is not None
    return store.joins


async def push(store: Store, handle: object) -> list[Pushed]:
    return await joins_of(store).enlist(handle).push([JOB], now=0)


async def refusal(store: Store, handle: object) -> str:
    """The words in which a push is refused."""
    with pytest.raises(TransactionRefused) as caught:
        await push(store, handle)
    return str(caught.value)


async def in_psycopg(url: str, **options: Any) -> psycopg.AsyncConnection:
    return await psycopg.AsyncConnection.connect(url, **options)


class TestWhatIsNoTransaction:
    """Told from the object alone, when `in_` is called."""

    @pytest.fixture
    def joins(self) -> Joins:
        return joins_of(PostgresStore(NOWHERE))

    @pytest.mark.parametrize(
        ("handle", "what", "remedy"),
        [
            (create_engine("sqlite://"), "an Engine", "engine.begin()"),
            (create_async_engine("sqlite+aiosqlite://"), "an AsyncEngine", "engine.begin()"),
            (sessionmaker(), "a sessionmaker", "call it"),
            (async_sessionmaker(), "an async_sessionmaker", "call it"),
            (Depends(opened), "a Depends", "transactional(queue, SessionDep)"),
            (Annotated[AsyncSession, Depends(opened)], "an Annotated", "transactional(queue, SessionDep)"),
            (AsyncConnection(create_async_engine("sqlite+aiosqlite://")), "an AsyncConnection", "enter it"),
            (None, "a NoneType", "with a transaction open"),
            (NOWHERE, "a str", "with a transaction open"),
        ],
        ids=lambda value: value if isinstance(value, str) and " " in value else "",
    )
    def test_it_says_what_it_was_given_and_what_to_give(
        self, joins: Joins, handle: object, what: str, remedy: str
    ) -> None:
        with pytest.raises(TransactionRefused) as caught:
            joins.enlist(handle)
        message = str(caught.value)
        assert message.startswith(f"in_() was given {what}, ")
        assert remedy in message
        assert "secret" not in message

    async def test_a_pool(self, pg: Store, postgres_url: str, mysql_url: str) -> None:
        pools: list[Any] = [asyncpg.create_pool(postgres_url), await asyncmy.create_pool(**arguments_of(mysql_url))]
        pools.append(await aiomysql.create_pool(**arguments_of(mysql_url)))
        for pool in pools:
            assert "acquire a connection" in await refusal(pg, pool)
        for pool in pools[1:]:
            pool.close()
            await pool.wait_closed()

    async def test_what_ends_a_transaction(self, pg: Store, postgres_url: str) -> None:
        connection = await asyncpg.connect(postgres_url)
        async with connection.transaction():
            assert "the session or connection" in await refusal(pg, connection.transaction())
        await connection.close()
        async with async_engine(postgres_url, "asyncpg") as engine, AsyncSession(engine) as session:
            assert "the session or connection" in await refusal(pg, await session.begin())


class TestAnotherSortOfDatabase:
    def test_a_drivers_connection_is_told_by_its_class(self) -> None:
        joins = joins_of(PostgresStore(NOWHERE))
        with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(TransactionRefused) as caught:
            joins.enlist(connection)
        assert str(caught.value) == (
            "in_() was given a sqlite3 connection to sqlite, but the queue's jobs are in postgres: "
            "give it a transaction on the queue's own database, or push without one"
        )

    async def test_a_sessions_is_told_by_its_engine(self) -> None:
        store = PostgresStore(NOWHERE)
        with sync_engine("sqlite://", "pysqlite") as engine, Session(engine) as session:
            assert "a Session to sqlite, but the queue's jobs are in postgres" in await refusal(store, session)
        async with async_engine("sqlite://", "aiosqlite") as awaited_engine, AsyncSession(awaited_engine) as awaited:
            assert "an AsyncSession to sqlite, but" in await refusal(store, awaited)


class TestNoTransaction:
    """A job that would be kept at once, whatever becomes of the rest."""

    async def test_asyncpg_outside_a_transaction(self, pg: Store, postgres_url: str) -> None:
        connection = await asyncpg.connect(postgres_url)
        assert "async with connection.transaction()" in await refusal(pg, connection)
        async with connection.transaction():
            assert (await push(pg, connection))[0].new
        await connection.close()

    async def test_psycopg_in_autocommit(self, pg: Store, postgres_url: str) -> None:
        async with await in_psycopg(postgres_url, autocommit=True) as connection:
            assert "with connection.transaction()" in await refusal(pg, connection)
            async with connection.transaction():
                assert (await push(pg, connection))[0].new

    async def test_psycopg_after_an_error(self, pg: Store, postgres_url: str) -> None:
        async with await in_psycopg(postgres_url) as connection:
            with pytest.raises(psycopg.errors.DivisionByZero):
                await connection.execute("SELECT 1 / 0")
            assert "has failed already: roll it back" in await refusal(pg, connection)
            await connection.rollback()
            assert (await push(pg, connection))[0].new

    @pytest.mark.parametrize("driver", [asyncmy, aiomysql])
    async def test_mysql_in_autocommit(self, my: Store, mysql_url: str, driver: Any) -> None:
        connection = await driver.connect(**arguments_of(mysql_url), autocommit=True)
        assert "await connection.begin()" in await refusal(my, connection)
        await connection.begin()
        assert (await push(my, connection))[0].new
        await connection.ensure_closed()

    async def test_sqlite3_in_autocommit(self, lite: Store, sqlite_url: str) -> None:
        with closing(sqlite3.connect(path_of(sqlite_url), isolation_level=None)) as connection:
            assert "BEGIN IMMEDIATE" in await refusal(lite, connection)
            connection.execute("BEGIN IMMEDIATE")
            assert (await push(lite, connection))[0].new

    async def test_aiosqlite_in_autocommit(self, lite: Store, sqlite_url: str) -> None:
        async with aiosqlite.connect(path_of(sqlite_url), isolation_level=None) as connection:
            assert "BEGIN IMMEDIATE" in await refusal(lite, connection)
            await connection.execute("BEGIN")
            assert (await push(lite, connection))[0].new

    @pytest.mark.skipif(sys.version_info < (3, 12), reason="sqlite3 has it from 3.12 on")
    async def test_sqlites_newer_autocommit(self, lite: Store, sqlite_url: str) -> None:
        options: dict[str, Any] = {"autocommit": True}
        with closing(sqlite3.connect(path_of(sqlite_url), **options)) as connection:
            assert "BEGIN IMMEDIATE" in await refusal(lite, connection)
        async with aiosqlite.connect(path_of(sqlite_url), **options) as awaited:
            assert "BEGIN IMMEDIATE" in await refusal(lite, awaited)

    async def test_a_session_that_may_not_begin_by_itself(self, lite: Store, sqlite_url: str) -> None:
        with sync_engine(sqlite_url, "pysqlite") as engine, Session(engine, autobegin=False) as session:
            assert "with session.begin()" in await refusal(lite, session)
            with session.begin():
                assert (await push(lite, session))[0].new

    async def test_a_session_of_several_engines(self, lite: Store, sqlite_url: str) -> None:
        with sync_engine(sqlite_url, "pysqlite") as engine, Session() as session:
            assert "bind_arguments=" in await refusal(lite, session)
            connection = session.connection(bind_arguments={"bind": engine})
            assert (await push(lite, connection))[0].new

    @pytest.mark.parametrize(
        ("store", "driver"),
        [
            ("postgres", "asyncpg"),
            ("postgres", "psycopg"),
            ("sqlite", "aiosqlite"),
            ("mysql", "asyncmy"),
            ("mysql", "aiomysql"),
        ],
    )
    async def test_an_engine_in_autocommit(self, request: pytest.FixtureRequest, store: str, driver: str) -> None:
        url = request.getfixturevalue(f"{store}_url")
        async with opened(store_at(store, url)) as own, async_engine(url, driver) as engine:
            async with AsyncSession(engine.execution_options(isolation_level="AUTOCOMMIT")) as session:
                assert "another isolation_level" in await refusal(own, session)
            async with AsyncSession(engine) as session:
                assert (await push(own, session))[0].new


async def test_an_engine_whose_events_begin_is_no_autocommit_engine(lite: Store, sqlite_url: str) -> None:
    with sync_engine(sqlite_url, "pysqlite") as engine:

        @event.listens_for(engine, "connect")
        def let_events_begin(connection: sqlite3.Connection, _: object) -> None:
            connection.isolation_level = None

        @event.listens_for(engine, "begin")
        def begin(connection: Any) -> None:
            connection.exec_driver_sql("BEGIN IMMEDIATE")

        with Session(engine) as session:
            await push(lite, session)
            session.rollback()
            assert await lite.jobs(now=0) == []
            await push(lite, session)
            session.commit()
    assert len(await lite.jobs(now=0)) == 1


class TestAnotherDatabase:
    async def test_sqlite_another_file_or_none(self, lite: Store, sqlite_url: str, tmp_path: Path) -> None:
        copy = tmp_path / "copy.db"
        async with aiosqlite.connect(path_of(sqlite_url)) as connection:
            await connection.execute("VACUUM INTO ?", (str(copy),))
        for other in (str(copy), ":memory:"):
            with closing(sqlite3.connect(other)) as connection:
                assert f"the queue's jobs are in {path_of(sqlite_url)}" in await refusal(lite, connection)

    async def test_sqlite_the_same_file_by_another_name(self, lite: Store, sqlite_url: str, tmp_path: Path) -> None:
        link = tmp_path / "link.db"
        link.symlink_to(path_of(sqlite_url))
        with closing(sqlite3.connect(link)) as connection:
            assert (await push(lite, connection))[0].new

    async def test_sqlite_without_the_tables(self, sqlite_url: str) -> None:
        store = SQLiteStore(path_of(sqlite_url))
        with closing(sqlite3.connect(path_of(sqlite_url))) as connection:
            connection.execute("CREATE TABLE accounts (name)")
            assert "fastqueue migrate" in await refusal(store, connection)

    async def test_postgres_without_the_tables_keeps_its_transaction(self, pg: Store, postgres_server: str) -> None:
        with postgres.fresh_database(postgres_server) as other:
            async with await in_psycopg(other) as connection:
                await connection.execute("CREATE TABLE accounts (name text)")
                assert "fastqueue migrate" in await refusal(pg, connection)
                await connection.execute("INSERT INTO accounts VALUES ('ada')")
                await connection.commit()

    async def test_postgres_another_schema(self, pg: Store, postgres_url: str) -> None:
        async with (
            opened(PostgresStore(postgres_url, schema="elsewhere")),
            async_engine(postgres_url, "asyncpg") as engine,
            AsyncSession(engine) as session,
        ):
            await session.execute(text("SET search_path TO elsewhere"))
            assert "in another schema" in await refusal(pg, session)

    async def test_postgres_a_copy_restored_beside_it(self, postgres_server: str) -> None:
        with postgres.fresh_database(postgres_server) as url:
            async with opened(PostgresStore(url)) as store:
                await store.close()
                copy = f"{url}_copy"
                names = [each.rpartition("/")[2] for each in (copy, url)]
                with psycopg.connect(postgres_server, autocommit=True) as admin:
                    admin.execute(f"CREATE DATABASE {names[0]} TEMPLATE {names[1]}".encode())
                try:
                    async with await in_psycopg(copy) as connection:
                        assert f"the database {names[0]!r}, but" in await refusal(store, connection)
                finally:
                    with psycopg.connect(postgres_server, autocommit=True) as admin:
                        admin.execute(f"DROP DATABASE {names[0]}".encode())

    async def test_mysql(self, my: Store, mysql_server: str) -> None:
        with mysql.fresh_database(mysql_server) as other:
            async with async_engine(other, "asyncmy") as engine:
                async with AsyncSession(engine) as session:
                    assert "fastqueue migrate" in await refusal(my, session)
                async with opened(MySQLStore(other)), AsyncSession(engine) as session:
                    assert "but the queue's jobs are in the database" in await refusal(my, session)

    async def test_it_is_asked_once_for_each_connection(self, pg: Store, postgres_url: str) -> None:
        asked: list[str] = []
        with sync_engine(postgres_url, "psycopg") as engine:

            @event.listens_for(engine, "before_cursor_execute")
            def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
                asked.append(statement)

            for _ in range(3):
                with Session(engine) as session:
                    await push(pg, session)
        assert sum("identity" in each for each in asked) == 1

    async def test_tables_made_anew_are_found_again(self, pg: Store, postgres_url: str) -> None:
        async with await in_psycopg(postgres_url) as connection:
            await push(pg, connection)
        async with await in_psycopg(postgres_url) as connection:
            await connection.execute("UPDATE fastqueue_meta SET value = 'another' WHERE name = 'identity'")
            await connection.commit()
            assert (await push(pg, connection))[0].new


async def test_push_sync_is_refused_where_calls_are_awaited(lite: Store, sqlite_url: str) -> None:
    async with aiosqlite.connect(path_of(sqlite_url)) as connection:
        with pytest.raises(WrongPlace, match=r"an aiosqlite connection, whose calls are awaited: write `await"):
            joins_of(lite).enlist(connection).push_sync([JOB], now=0)
    async with async_engine(sqlite_url, "aiosqlite") as engine, AsyncSession(engine) as session:
        with pytest.raises(WrongPlace, match="an AsyncSession, whose calls are awaited"):
            joins_of(lite).enlist(session).push_sync([JOB], now=0)

"""Whatever rows, cursors and texts the app has chosen for its own statements, a push answers the same."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, closing
from typing import Any, TypeAlias

import aiomysql
import aiomysql.cursors
import aiosqlite
import asyncmy
import asyncmy.cursors
import asyncpg
import psycopg
import psycopg.rows
import pytest

from fastqueue.job import NewJob
from tests.handles import arguments_of, path_of, store_at

KEYS = (None, None, "a", "a")
"""Two that are inserted together, and two of one key."""

Connect: TypeAlias = Callable[[str, AsyncExitStack], Awaitable[Any]]


def by_name(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


async def in_sqlite3(url: str, stack: AsyncExitStack) -> Any:
    connection = stack.enter_context(closing(sqlite3.connect(path_of(url))))
    connection.row_factory = by_name
    connection.text_factory = bytes
    return connection


async def in_aiosqlite(url: str, stack: AsyncExitStack) -> Any:
    connection: Any = await stack.enter_async_context(aiosqlite.connect(path_of(url)))
    connection.row_factory = by_name
    connection.text_factory = bytes
    return connection


async def in_psycopg(url: str, stack: AsyncExitStack) -> Any:
    connection: Any = await stack.enter_async_context(await psycopg.AsyncConnection.connect(url))
    connection.row_factory = psycopg.rows.dict_row
    connection.cursor_factory = psycopg.AsyncRawCursor
    return connection


async def in_psycopg_sync(url: str, stack: AsyncExitStack) -> Any:
    connection: Any = stack.enter_context(psycopg.connect(url))
    connection.row_factory = psycopg.rows.dict_row
    connection.cursor_factory = psycopg.RawCursor
    return connection


async def in_psycopg_pipeline(url: str, stack: AsyncExitStack) -> Any:
    connection = await stack.enter_async_context(await psycopg.AsyncConnection.connect(url))
    await stack.enter_async_context(connection.pipeline())
    return connection


class ByName(asyncpg.Record):  # type: ignore[misc]  # asyncpg has no types
    """Rows that are also read by attributes."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


async def in_asyncpg(url: str, stack: AsyncExitStack) -> Any:
    connection = await asyncpg.connect(url, record_class=ByName, statement_cache_size=0)
    stack.push_async_callback(connection.close)
    await stack.enter_async_context(connection.transaction())
    return connection


async def in_asyncmy(url: str, stack: AsyncExitStack) -> Any:
    connection = await asyncmy.connect(**arguments_of(url), cursor_cls=asyncmy.cursors.DictCursor)
    stack.push_async_callback(connection.ensure_closed)
    return connection


async def in_aiomysql(url: str, stack: AsyncExitStack) -> Any:
    connection = await aiomysql.connect(**arguments_of(url), cursorclass=aiomysql.cursors.SSDictCursor)
    stack.push_async_callback(connection.ensure_closed)
    return connection


@pytest.mark.parametrize(
    ("name", "connect"),
    [
        ("sqlite", in_sqlite3),
        ("sqlite", in_aiosqlite),
        ("postgres", in_psycopg),
        ("postgres", in_psycopg_sync),
        ("postgres", in_psycopg_pipeline),
        ("postgres", in_asyncpg),
        ("mysql", in_asyncmy),
        ("mysql", in_aiomysql),
    ],
)
async def test_a_push_answers_the_same(request: pytest.FixtureRequest, name: str, connect: Connect) -> None:
    url = request.getfixturevalue(f"{name}_url")
    async with AsyncExitStack() as stack:
        store = store_at(name, url)
        await store.open()
        stack.push_async_callback(store.close)
        assert store.joins is not None
        async with AsyncExitStack() as transaction:
            connection = await connect(url, transaction)
            jobs = [NewJob(kind="mail", payload=str(n), run_at=0, unique_key=key) for n, key in enumerate(KEYS)]
            pushed = await store.joins.enlist(connection).push(jobs, now=0)
            if hasattr(connection, "commit"):
                commit = connection.commit()
                if commit is not None:
                    await commit
        assert [each.new for each in pushed] == [True, True, True, False]
        stored = {job.id: int(job.payload) for job in await store.jobs(now=0)}
        assert [stored[each.id] for each in pushed] == [0, 1, 2, 2]

"""Jobs in every state by one statement, and what the server did to find them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from pymysql.cursors import Cursor

from fastqueue.stores._rows import NEVER
from fastqueue.stores._sql import Call, Statement
from fastqueue.stores.mysql import MySQLStore
from fastqueue.stores.mysql._connections import Pool
from tests.servers import mysql
from tests.stores.jobs import NOW

STATES = {
    "waiting": f"{NOW} - 1000000 + n, {NOW} - 1000000 + n, {NEVER}, 0, NULL",
    "delayed": f"{NOW} + 1 + n, {NOW} + 1 + n, {NEVER}, 0, NULL",
    "held": f"{NOW} - n, {NEVER}, {NOW} + 60000, 1 + n, NULL",
    "failed": f"{NOW} - n, {NEVER}, {NEVER}, 0, {NOW} - n",
}
"""Each state's run_at, due, held_until, token and failed_at."""


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncGenerator[MySQLStore]:
    """An open store."""
    store = MySQLStore(url, **options)
    try:
        await store.open()
        yield store
    finally:
        await store.close()


@contextmanager
def connected(url: str) -> Generator[Cursor]:
    """A cursor of the test's own, on a connection in autocommit."""
    with mysql.connect(url) as connection, connection.cursor() as cursor:
        yield cursor


def seed(cursor: Cursor, rows: int, kind: str, state: str = "waiting", *, mode: int = 0, key: str = "NULL") -> None:
    """Many jobs of a kind in one state, and their lane; `key` is SQL for the alone_key of job n."""
    cursor.execute(f"""
        INSERT INTO fastqueue_jobs (
            queue, kind, mode, hold_ms, payload, created_at, alone_key, run_at, due, held_until, token, failed_at
        )
        SELECT 'default', '{kind}', {mode}, 60000, '{{}}', 0, {key}, {STATES[state]}
        FROM (
            SELECT a.slot * 100 + b.slot AS n
            FROM fastqueue_slots a JOIN fastqueue_slots b ON b.slot < 100 WHERE a.slot * 100 + b.slot < {rows}
        ) numbers
    """)
    cursor.execute(f"INSERT IGNORE INTO fastqueue_held_kinds VALUES ('{kind}', 0)")
    cursor.execute(f"INSERT IGNORE INTO fastqueue_lanes VALUES ('default', '{kind}', {mode}, '')")


async def ask(pool: Pool, text: str) -> list[tuple[Any, ...]]:
    """Rows that one of a pool's connections gives."""
    async with pool.statements() as execute:
        return [tuple(row) for row in (await execute(Call(Statement("test", text), {}))).rows]


async def rows_read(pool: Pool) -> int:
    """How many index entries and rows the one connection of a pool has read so far: the same on every machine."""
    return sum(int(value) for _, value in await ask(pool, "SHOW SESSION STATUS LIKE 'Handler_read%'"))


def running(cursor: Cursor, statement: str) -> list[int]:
    """The connections to the test's database that are in a statement which begins so."""
    cursor.execute(
        "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE %s", (f"{statement}%",)
    )
    return [id for (id,) in cursor.fetchall()]

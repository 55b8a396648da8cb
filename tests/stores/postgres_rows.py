"""Jobs in every state by one statement, and what the server did to find them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from fastqueue.stores._rows import NEVER
from fastqueue.stores.postgres import PostgresStore
from fastqueue.stores.postgres._connections import Pool
from tests.stores.jobs import NOW

STATES = {
    "waiting": f"{NOW} - 1000000 + n, {NOW} - 1000000 + n, {NEVER}, 0, NULL",
    "delayed": f"{NOW} + n, {NOW} + n, {NEVER}, 0, NULL",
    "held": f"{NOW} - n, {NEVER}, {NOW} + 60000, n, NULL",
    "failed": f"{NOW} - n, {NEVER}, {NEVER}, 0, {NOW} - n",
}
"""Each state's run_at, due, held_until, token and failed_at."""


async def seed(
    connection: asyncpg.Connection, rows: int, kind: str, state: str = "waiting", *, mode: int = 0, key: str = "NULL"
) -> None:
    """Many jobs of a kind in one state; `key` is SQL for the alone_key of job n."""
    await connection.execute(f"""
        INSERT INTO fastqueue_jobs (
            queue, kind, mode, hold_ms, payload, created_at, alone_key, run_at, due, held_until, token, failed_at
        )
        SELECT 'default', '{kind}', {mode}, 60000, '{{}}', 0, {key}, {STATES[state]}
        FROM generate_series(1, {rows}) n
    """)


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncGenerator[PostgresStore]:
    """An open store."""
    store = PostgresStore(url, **options)
    try:
        await store.open()
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def connected(url: str) -> AsyncGenerator[asyncpg.Connection]:
    """A connection of the test's own."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def plans(pool: Pool) -> AsyncGenerator[list[dict[str, Any]]]:
    """The plans of what a store runs on a pool of one connection, with those inside functions, as they are run."""
    found: list[dict[str, Any]] = []

    def keep(connection: object, message: Any) -> None:
        _, _, plan = message.message.partition("plan:")
        if plan:
            found.append(json.loads(plan))

    async with pool.borrow() as connection:
        await connection.execute("""
            LOAD 'auto_explain';
            SET auto_explain.log_min_duration = 0;
            SET auto_explain.log_nested_statements = on;
            SET auto_explain.log_analyze = on;
            SET auto_explain.log_buffers = on;
            SET auto_explain.log_format = json;
            SET client_min_messages = log;
        """)
        connection.add_log_listener(keep)
    yield found
    async with pool.borrow() as connection:
        connection.remove_log_listener(keep)
        await connection.execute("SET client_min_messages = notice")


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Each step of a plan that was run at least once."""
    todo = [plan["Plan"]]
    while todo:
        node = todo.pop()
        todo += node.get("Plans", [])
        if node.get("Actual Loops", 1):
            yield node


def blocks(plan: dict[str, Any]) -> int:
    """How many blocks a statement looked at: the same on every machine."""
    return int(plan["Plan"]["Shared Hit Blocks"]) + int(plan["Plan"]["Shared Read Blocks"])

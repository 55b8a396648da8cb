"""What every test has: servers to run on, and a watch on what it leaves behind."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncGenerator, Iterator

import pytest

from tests.servers.fixtures import (
    mysql_place,
    mysql_server,
    mysql_url,
    pgbouncer_server,
    pooled_url,
    postgres18_server,
    postgres18_url,
    postgres_place,
    postgres_server,
    postgres_url,
    redis_server,
    redis_url,
    sqlite_place,
    sqlite_url,
)

__all__ = [
    "mysql_place",
    "mysql_server",
    "mysql_url",
    "no_task_left_running",
    "nothing_left_running",
    "pgbouncer_server",
    "pooled_url",
    "postgres18_server",
    "postgres18_url",
    "postgres_place",
    "postgres_server",
    "postgres_url",
    "redis_server",
    "redis_url",
    "sqlite_place",
    "sqlite_url",
]

ENDS_WITHIN = 5.0
"""Seconds that a thread which was told to stop may still take."""


@pytest.fixture(autouse=True)
def nothing_left_running(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves one of fastqueue's threads behind, or, if it is async, one of its tasks."""
    if isinstance(request.node, pytest.Function) and inspect.iscoroutinefunction(request.function):
        request.getfixturevalue("no_task_left_running")
    before = set(threading.enumerate())
    yield
    new = [thread for thread in set(threading.enumerate()) - before if thread.name.startswith("fastqueue")]
    for thread in new:
        thread.join(ENDS_WITHIN)
    left = sorted(thread.name for thread in new if thread.is_alive())
    assert not left, f"threads left running: {', '.join(left)}"


@pytest.fixture
async def no_task_left_running() -> AsyncGenerator[None]:
    """Fail a test whose event loop still runs one of fastqueue's tasks at its end."""
    yield
    left = sorted(task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("fastqueue"))
    assert not left, f"tasks left running: {', '.join(left)}"

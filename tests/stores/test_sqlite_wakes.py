from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fastqueue.job import NewJob
from fastqueue.store import Wakes
from fastqueue.stores._sql import Statements, Tables
from fastqueue.stores.sqlite import SQLiteStore
from fastqueue.stores.sqlite._database import Database
from fastqueue.stores.sqlite._watch import Watch

NEW = NewJob(kind="count", payload="{}", run_at=0)


def wakes(store: SQLiteStore) -> Wakes:
    assert store.wakes is not None
    return store.wakes


@asynccontextmanager
async def listening(store: SQLiteStore) -> AsyncGenerator[asyncio.Event]:
    woken = asyncio.Event()
    task = asyncio.create_task(wakes(store).listen(woken.set))
    while not wakes(store).up:
        await store.lanes()
    yield woken
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SQLiteStore]:
    store = SQLiteStore(tmp_path / "jobs.db")
    await store.open()
    yield store
    await store.close()


async def soon(woken: asyncio.Event) -> None:
    async with asyncio.timeout(30):
        await woken.wait()
    woken.clear()


async def test_the_commit_of_another_connection_wakes_who_listens(store: SQLiteStore) -> None:
    async with listening(store) as woken:
        app = sqlite3.connect(store.path)
        app.execute("CREATE TABLE users (id)")
        app.commit()
        await soon(woken)
        app.close()


async def test_two_stores_in_one_process_wake_each_other(store: SQLiteStore) -> None:
    other = SQLiteStore(store.path)
    await other.open()
    async with listening(store) as woken, listening(other) as woken_too:
        await other.push([NEW], now=0)
        await wakes(other).tell()
        await soon(woken)
        await store.push([NEW], now=0)
        await soon(woken_too)
    await other.close()


async def test_a_store_that_is_opened_again_wakes_who_still_listens(store: SQLiteStore) -> None:
    async with listening(store) as woken:
        await store.close()
        await store.open()
        await soon(woken)


async def test_who_is_cancelled_before_it_listens_is_never_called(store: SQLiteStore) -> None:
    for turns in range(3):
        task = asyncio.create_task(wakes(store).listen(lambda: None))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    await store.lanes()
    assert store._access.watch.wait is None


async def test_nobody_listens_after_the_last_has_gone(store: SQLiteStore) -> None:
    assert not wakes(store).up
    async with listening(store):
        async with listening(store):
            pass
        assert wakes(store).up
    assert not wakes(store).up
    assert store._access.watch.wait is None


class Watched:
    """A watch and its connection, asked by hand."""

    def __init__(self, path: Path) -> None:
        self.database = Database(str(path), Statements("sqlite", Tables()), "FULL")
        self.watch = Watch()
        self.calls = 0
        self.watch.add(self, self.call)
        self.watch.look(self.database)

    def call(self) -> None:
        self.calls += 1

    def look(self) -> int:
        self.watch._next = 0.0
        self.watch.look(self.database)
        return self.calls


def test_a_watch_calls_once_for_what_others_commit_and_never_for_its_own(tmp_path: Path) -> None:
    mine = Watched(tmp_path / "jobs.db")
    other = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
    assert mine.look() == 0
    mine.database._connection.execute("CREATE TABLE mine (id)")
    assert mine.look() == 0
    other.execute("CREATE TABLE other (id)")
    other.execute("INSERT INTO other VALUES (1)")
    assert (mine.look(), mine.look()) == (1, 1)
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO other VALUES (2)")
    assert mine.look() == 1
    other.execute("COMMIT")
    assert mine.look() == 2
    other.close()
    mine.database.close()


def test_a_watch_that_could_not_ask_calls_when_it_can_again(tmp_path: Path) -> None:
    mine = Watched(tmp_path / "jobs.db")
    healthy, closed = mine.database, Database(str(tmp_path / "jobs.db"), Statements("sqlite", Tables()), "FULL")
    closed.close()
    mine.database = closed
    assert mine.look() == 0
    mine.database = healthy
    assert (mine.look(), mine.look()) == (1, 1)
    healthy.close()


def test_a_watch_asks_no_more_often_than_every_50_ms(tmp_path: Path) -> None:
    mine = Watched(tmp_path / "jobs.db")
    assert mine.look() == 0
    wait = mine.watch.wait
    assert wait is not None
    assert 0 < wait <= 0.05
    mine.database.close()

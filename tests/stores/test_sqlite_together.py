"""Functions that wait for the store's thread share one transaction."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from fastqueue.errors import StoreUnavailable
from fastqueue.job import NewJob
from fastqueue.stores.sqlite import SQLiteStore
from fastqueue.stores.sqlite._database import Database
from fastqueue.stores.sqlite._thread import Work

NOW = 1_000_000
NEW = NewJob(kind="count", payload="{}", run_at=NOW)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SQLiteStore]:
    store = SQLiteStore(tmp_path / "jobs.db")
    await store.open()
    yield store
    await store.close()


class Busy:
    """Keeps a store's thread busy, so that what is asked meanwhile waits together; then notes its statements."""

    def __init__(self, store: SQLiteStore) -> None:
        self.statements: list[str] = []
        self._begun, self._go = threading.Event(), threading.Event()
        store._access.submit(Work(self._wait, writes=False))
        self._begun.wait()

    def _wait(self, database: Database) -> None:
        self._begun.set()
        self._go.wait()
        database._connection.set_trace_callback(self.statements.append)

    async def together(self, *calls: Any) -> list[Any]:
        tasks = [asyncio.ensure_future(call) for call in calls]
        await asyncio.sleep(0)
        self._go.set()
        return await asyncio.gather(*tasks, return_exceptions=True)


async def recorded(store: SQLiteStore) -> dict[str, int]:
    assert store.schedules is not None
    return await store.schedules.recorded()


def broken(error: Exception) -> Callable[[Database], None]:
    def write(database: Database) -> None:
        database.do("schedules.record", name="broken", run_at=1)
        raise error

    return write


async def test_pushes_that_wait_together_are_one_commit(store: SQLiteStore) -> None:
    busy = Busy(store)
    answers = await busy.together(*(store.push([NEW], now=NOW) for _ in range(5)))
    assert [answer[0].id for answer in answers] == [1, 2, 3, 4, 5]
    assert (busy.statements.count("BEGIN IMMEDIATE"), busy.statements.count("COMMIT")) == (1, 1)
    assert busy.statements.count("SAVEPOINT apart") == 5


async def test_one_push_alone_needs_no_savepoint(store: SQLiteStore) -> None:
    busy = Busy(store)
    await busy.together(store.push([NEW], now=NOW))
    assert (busy.statements[0], len(busy.statements), busy.statements[-1]) == ("BEGIN IMMEDIATE", 3, "COMMIT")


async def test_the_failure_of_one_leaves_its_neighbours(store: SQLiteStore) -> None:
    class Mistake(Exception):
        pass

    answers = await Busy(store).together(
        store.push([NEW], now=NOW),
        store._access.write(broken(Mistake("mine"))),
        store.push([NEW], now=NOW),
        store._access.write(lambda database: database.do("meta.record", number=1, name="x", applied_at=0).rowcount),
        store.push([NEW], now=NOW),
    )
    assert [isinstance(answer, list) for answer in answers] == [True, False, True, False, True]
    assert (type(answers[1]).__name__, type(answers[3]).__name__) == ("Mistake", "IntegrityError")
    assert len(await store.jobs(now=NOW)) == 3
    assert await recorded(store) == {}


async def test_the_failure_of_one_alone_is_undone(store: SQLiteStore) -> None:
    with pytest.raises(KeyError):
        await store._access.write(broken(KeyError("mine")))
    assert await recorded(store) == {}
    assert not await store._access.read(lambda database: database.in_transaction)


async def test_a_commit_that_fails_fails_all(store: SQLiteStore) -> None:
    def owe(database: Database) -> None:
        database._connection.execute("INSERT INTO child VALUES (1)")

    def prepare(database: Database) -> None:
        database._connection.executescript(
            "CREATE TABLE parent (id INTEGER PRIMARY KEY);"
            "CREATE TABLE child (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED);"
            "PRAGMA foreign_keys = ON;"
        )

    await store._access.read(prepare)
    answers = await Busy(store).together(
        store.push([NEW], now=NOW), store._access.write(owe), store.push([NEW], now=NOW)
    )
    assert [str(answer) for answer in answers] == ["FOREIGN KEY constraint failed"] * 3
    assert await store.jobs(now=NOW) == []
    assert await store.push([NEW], now=NOW)


async def test_a_disk_that_is_full_fails_all_of_a_transaction_and_the_store_goes_on(store: SQLiteStore) -> None:
    big = NewJob(kind="count", payload="x" * 1_000_000, run_at=NOW)

    def limit(pages: int) -> Callable[[Database], None]:
        return lambda database: database._connection.execute(f"PRAGMA max_page_count = {pages}").close()

    await store._access.read(limit(1))  # SQLite takes this as: no more than there are
    answers = await Busy(store).together(
        store.push([NEW], now=NOW), store.push([big], now=NOW), store.push([NEW], now=NOW)
    )
    assert isinstance(answers[1], StoreUnavailable)
    assert "there is no room left on its disk" in str(answers[1])
    kept = len(await store.jobs(now=NOW))
    assert kept == sum(isinstance(answer, list) for answer in answers)
    await store._access.read(limit(100_000))
    assert await store.push([big], now=NOW)


async def test_a_read_sees_what_was_asked_before_it(store: SQLiteStore) -> None:
    _, jobs = await Busy(store).together(store.push([NEW], now=NOW), store.jobs(now=NOW))
    assert len(jobs) == 1


async def test_a_claim_beside_a_push_shares_its_transaction(store: SQLiteStore) -> None:
    busy = Busy(store)
    _, claim = await busy.together(
        store.push([NEW], now=NOW), store.claim(NOW, token=1, limit=9, queues=None, kinds={"count"})
    )
    assert len(claim.jobs) == 1
    assert busy.statements.count("COMMIT") == 1


async def test_claims_that_find_nothing_begin_no_transaction(store: SQLiteStore) -> None:
    busy = Busy(store)
    await busy.together(*(store.claim(NOW, token=1, limit=9, queues=None, kinds={"count"}) for _ in range(3)))
    assert not [text for text in busy.statements if not text.startswith(("SELECT", "WITH"))]


async def test_an_error_of_a_look_is_its_caller_s(store: SQLiteStore) -> None:
    def look(database: Database) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await store._access.write(lambda database: None, look=look)


def push_once(database: Database) -> int:
    return database.do("schedules.record", name="sync", run_at=1).rowcount


async def test_a_caller_without_an_event_loop_gets_its_answer(store: SQLiteStore) -> None:
    def ask() -> int:
        work = Work(push_once, writes=True)
        store._access.submit(work)
        assert not isinstance(work.future, asyncio.Future)
        return work.future.result(timeout=30)

    assert await asyncio.to_thread(ask) == 1

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fastqueue.errors import OptionError, StoreUnavailable
from fastqueue.job import NewJob
from fastqueue.stores.sqlite import SQLiteStore, _database
from fastqueue.stores.sqlite._database import Database

ROOT = Path(__file__).parents[2]
NOW = 1_000_000


def job(n: int = 0, *, run_at: int = NOW, kind: str = "count", queue: str = "default", at_once: int = 0) -> NewJob:
    return NewJob(kind=kind, payload=f'{{"n": {n}}}', run_at=run_at, queue=queue, at_once=at_once)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SQLiteStore]:
    store = SQLiteStore(tmp_path / "jobs.db")
    await store.open()
    yield store
    await store.close()


def other_connection(store: SQLiteStore) -> sqlite3.Connection:
    return sqlite3.connect(store.path, timeout=0, isolation_level=None)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///app.db", str(Path.cwd() / "app.db")),
        ("sqlite:////var/lib/app.db", "/var/lib/app.db"),
        ("sqlite+aiosqlite:////var/lib/app.db?timeout=5", "/var/lib/app.db"),
        ('sqlite:///it\'s a "file".db', str(Path.cwd() / 'it\'s a "file".db')),
    ],
)
def test_a_url_names_a_file(url: str, path: str) -> None:
    assert SQLiteStore.from_url(url).path == path


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///file::memory:?cache=shared"]
)
def test_a_url_without_a_file_is_refused_with_the_remedy(url: str) -> None:
    with pytest.raises(OptionError, match="use memory://"):
        SQLiteStore.from_url(url)


def test_a_url_with_two_slashes_is_refused_with_the_remedy() -> None:
    with pytest.raises(OptionError, match="write sqlite:///"):
        SQLiteStore.from_url("sqlite://app.db")


def test_another_synchronous_is_refused() -> None:
    with pytest.raises(OptionError, match="synchronous is 'OFF'; it takes 'FULL' or 'NORMAL'"):
        SQLiteStore("app.db", synchronous="OFF")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("synchronous", "number"), [("FULL", 2), ("NORMAL", 1)])
async def test_the_file_is_in_wal_mode_and_as_synchronous_as_asked(
    tmp_path: Path, synchronous: _database.Synchronous, number: int
) -> None:
    store = SQLiteStore(tmp_path / "jobs.db", synchronous=synchronous)
    await store.open()

    def pragmas(database: Database) -> tuple[str, int]:
        asked = database._connection.execute
        return asked("PRAGMA journal_mode").fetchone()[0], asked("PRAGMA synchronous").fetchone()[0]

    assert await store._access.read(pragmas) == ("wal", number)
    await store.close()


async def test_a_store_that_is_not_open_says_so(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "jobs.db")
    with pytest.raises(StoreUnavailable, match=r"jobs\.db is not open; await its open\(\) first"):
        await store.push([job()], now=NOW)
    await store.close()


async def test_a_store_can_be_opened_twice_and_closed_twice_and_opened_again(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "jobs.db")
    await asyncio.gather(store.open(), store.open())
    await store.open()
    await store.push([job()], now=NOW)
    await asyncio.gather(store.close(), store.close())
    await store.close()
    await store.open()
    assert [kept.id for kept in await store.jobs(now=NOW)] == [1]
    await store.close()


async def test_closing_keeps_what_was_handed_over_before(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "jobs.db")
    await store.open()
    pushes = [asyncio.create_task(store.push([job(n)], now=NOW)) for n in range(5)]
    await asyncio.sleep(0)
    await store.close()
    assert [[pushed.id for pushed in await push] for push in pushes] == [[1], [2], [3], [4], [5]]


async def test_the_store_is_used_from_two_event_loops_at_once(store: SQLiteStore) -> None:
    async def elsewhere() -> list[int]:
        await store.open()
        return [(await store.push([job(n)], now=NOW))[0].id for n in range(20)]

    there = asyncio.to_thread(asyncio.run, elsewhere())
    here = elsewhere()
    ids = await asyncio.gather(there, here)
    assert sorted(ids[0] + ids[1]) == list(range(1, 41))


async def test_a_loop_that_ended_before_its_answer_disturbs_nobody(store: SQLiteStore) -> None:
    go = threading.Event()

    async def leave() -> None:
        asyncio.get_running_loop().create_task(store._access.read(lambda _: go.wait()))
        await asyncio.sleep(0)

    await asyncio.to_thread(asyncio.run, leave())
    go.set()
    assert await store.push([job()], now=NOW)


async def test_a_claim_that_finds_nothing_takes_no_lock(store: SQLiteStore) -> None:
    await store.push([job(run_at=NOW + 5_000)], now=NOW)
    other = other_connection(store)
    other.execute("BEGIN IMMEDIATE")
    claim = await store.claim(NOW, token=1, limit=10, queues=None, kinds={"count"})
    assert (claim.jobs, claim.next_due) == ([], NOW + 5_000)
    other.close()


async def test_a_claim_that_finds_its_kinds_full_takes_no_lock(store: SQLiteStore) -> None:
    await store.push([job(n, at_once=2) for n in range(3)], now=NOW)
    await store.push([job(4, kind="later", run_at=NOW + 5_000)], now=NOW)
    assert len((await store.claim(NOW, token=1, limit=9, queues=None, kinds={"count"})).jobs) == 2
    other = other_connection(store)
    other.execute("BEGIN IMMEDIATE")
    claim = await store.claim(NOW, token=2, limit=9, queues=None, kinds={"count", "later"})
    assert (claim.jobs, claim.next_due) == ([], NOW + 5_000)
    other.close()


async def test_a_claim_says_when_the_next_of_its_jobs_is_due(store: SQLiteStore) -> None:
    await store.push([job(1), job(2, run_at=NOW + 10), job(3, run_at=NOW + 20)], now=NOW)
    await store.push([job(4, run_at=NOW + 5, kind="unknown"), job(5, run_at=NOW + 5, queue="other")], now=NOW)
    claim = await store.claim(NOW, token=1, limit=10, queues=["default"], kinds={"count"})
    assert (len(claim.jobs), claim.next_due) == (1, NOW + 10)


async def test_a_kind_that_is_held_back_is_next_due_when_that_is_over(store: SQLiteStore) -> None:
    await store.push([job(1)], now=NOW)
    (held,) = (await store.claim(NOW, token=1, limit=1, queues=None, kinds={"count"})).jobs
    await store._access.write(lambda database: database.do("hold_back.kind", kind="count", until=NOW + 70).rowcount)
    await store.give_back([held])
    assert (await store.claim(NOW, token=2, limit=1, queues=None, kinds={"count"})).next_due == NOW + 70
    assert len((await store.claim(NOW + 70, token=3, limit=1, queues=None, kinds={"count"})).jobs) == 1


async def test_nothing_asked_is_nothing_done(store: SQLiteStore) -> None:
    assert await store.push([], now=NOW) == []
    assert await store.settle([]) == []
    assert await store.give_back([]) == []
    assert await store.renew([], now=NOW, until=NOW) == []
    assert (await store.claim(NOW, token=1, limit=0, queues=None, kinds={"count"})).jobs == []
    assert (await store.claim(NOW, token=1, limit=1, queues=None, kinds=[])).jobs == []
    assert (await store.claim(NOW, token=1, limit=1, queues=[], kinds={"count"})).jobs == []


async def test_each_of_many_jobs_gets_the_id_of_its_own_row(store: SQLiteStore) -> None:
    jobs = [job(n) if n % 60 else job(n)._replace(unique_key=str(n % 120)) for n in range(237)]
    pushed = await store.push(jobs, now=NOW)
    assert [n for n, answer in enumerate(pushed) if not answer.new] == [120, 180]
    kept = {stored.id: stored.payload for stored in await store.jobs(now=NOW, limit=1_000)}
    assert kept == {answer.id: new.payload for new, answer in zip(jobs, pushed, strict=True) if answer.new}
    assert (pushed[120].id, pushed[180].id) == (pushed[0].id, pushed[60].id)
    assert list(kept) == sorted(answer.id for answer in pushed if answer.new)


async def test_a_hold_is_renewed_after_another_s_lock(store: SQLiteStore) -> None:
    await store.push([job()], now=NOW)
    claimed = (await store.claim(NOW, token=1, limit=1, queues=None, kinds={"count"})).jobs
    other = other_connection(store)
    other.execute("BEGIN IMMEDIATE")
    renewing = asyncio.create_task(store.renew(claimed, now=NOW, until=NOW + 999_000))
    done, _ = await asyncio.wait([renewing], timeout=0.05)
    assert not done
    other.execute("COMMIT")
    assert await renewing == [True]
    other.close()


HOSTILE = ["'", '"', "a'b\"c`d", "a.b", "a;DROP TABLE x", "%s :id ?", "é\u2028", "x" * 64, "x" * 70, "{jobs}", "a\\"]


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_name_is_data(store: SQLiteStore, name: str) -> None:
    new = NewJob(
        kind=name, payload=name, run_at=NOW, queue=name, unique_key=name, alone_key=name, options=name, carried=name
    )
    (pushed,) = await store.push([new], now=NOW)
    (again,) = await store.push([new], now=NOW)
    assert (again.id, again.new) == (pushed.id, False)
    (claimed,) = (await store.claim(NOW, token=1, limit=9, queues=[name, name], kinds=[name])).jobs
    assert (claimed.kind, claimed.queue, claimed.payload, claimed.options) == (name,) * 4
    assert (claimed.unique_key, claimed.alone_key, claimed.carried) == (name,) * 3
    assert [lane.queue for lane in await store.lanes()] == []
    assert store.throttles is not None
    assert await store.throttles.hit(name, now=NOW, window_ms=5) == (1, NOW + 5)


async def test_two_prefixes_in_one_file_are_two_queues(tmp_path: Path) -> None:
    one, two = (SQLiteStore(tmp_path / "jobs.db", prefix=prefix) for prefix in ("one_", "two_"))
    await one.open()
    await two.open()
    await one.push([job()], now=NOW)
    assert (len(await one.jobs(now=NOW)), await two.jobs(now=NOW)) == (1, [])
    assert await one.identity() != await two.identity()
    await one.close()
    await two.close()


async def test_pruning_goes_in_portions(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SQLiteStore, "portion", 3)
    await store.push([job(n) for n in range(8)], now=NOW)

    def fail(database: Database) -> None:
        database._connection.execute("UPDATE fastqueue_jobs SET failed_at = id, due = 9223372036854775807")
        for n in range(7):
            database.do("throttles.hit", name=str(n), now=n, window_ms=1)

    await store._access.write(fail)
    assert await store.prune(7, failed_before=8) == 7
    assert [left.id for left in await store.jobs(now=NOW)] == [8]
    assert store.throttles is not None
    assert [n for n in range(7) if await store.throttles.tries(str(n), now=-1)] == []


SCRIPT = """
import asyncio, os, sys
from fastqueue.job import NewJob
from fastqueue.stores.sqlite import SQLiteStore

store = SQLiteStore(sys.argv[1])

async def push():
    await store.open()
    await store.push([NewJob(kind="count", payload="{}", run_at=0)], now=0)

asyncio.run(push())
"""


async def run_script(text: str, path: Path) -> None:
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-W", "ignore", "-c", text, str(path)],
        cwd=ROOT,
        timeout=60,
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (0, b"")


async def test_a_process_that_forgets_to_close_its_store_ends_and_leaves_a_tidy_file(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    await run_script(SCRIPT, path)
    assert os.listdir(tmp_path) == ["jobs.db"]
    store = SQLiteStore(path)
    await store.open()
    assert len(await store.jobs(now=0)) == 1
    await store.close()


async def test_a_process_forked_off_while_the_store_is_open_is_told_to_open_it_later(tmp_path: Path) -> None:
    fork = """
child = os.fork()
if child:
    asyncio.run(push())
    sys.exit(os.waitpid(child, 0)[1])
try:
    asyncio.run(push())
except Exception as error:
    sys.exit("close it before the fork" not in str(error))
sys.exit("was not refused")
"""
    await run_script(SCRIPT + fork, tmp_path / "jobs.db")


async def test_a_store_that_was_closed_before_a_fork_works_on_both_sides_of_it(tmp_path: Path) -> None:
    fork = """
asyncio.run(store.close())
child = os.fork()
asyncio.run(push())
if child:
    sys.exit(os.waitpid(child, 0)[1])
"""
    path = tmp_path / "jobs.db"
    await run_script(SCRIPT + fork, path)
    store = SQLiteStore(path)
    await store.open()
    assert len(await store.jobs(now=0)) == 3
    await store.close()


async def test_a_path_may_be_given_as_a_path(tmp_path: Path) -> None:
    assert SQLiteStore(tmp_path / "x.db").path == os.fspath(tmp_path / "x.db")
    assert repr(SQLiteStore("/x.db")) == "SQLiteStore('/x.db')"

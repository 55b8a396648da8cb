"""queue.transaction(): a transaction on the queue's own database, whatever ends it."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncmy
import asyncpg
import pytest
from sqlalchemy import text

from fastqueue import Queue
from fastqueue.errors import StoreUnavailable, TransactionEnded, TransactionRefused, TwoTransactions, Unsupported
from fastqueue.kind import Kind
from fastqueue.store import Store
from fastqueue.stores.memory import MemoryStore
from tests.handles import arguments_of, store_at, sync_engine
from tests.worker.stage import running, soon

SYNC_DRIVERS = {"sqlite": "pysqlite", "postgres": "psycopg", "mysql": "pymysql"}

CUT = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, asyncmy.errors.Error)
"""What drivers raise on a connection that the server has ended."""

numbers = itertools.count()


async def execute(connection: Any, sql: str) -> Any:
    """Run a statement of the app's, whichever driver it is; the rows."""
    if isinstance(connection, asyncmy.connection.Connection):
        async with connection.cursor() as cursor:
            await cursor.execute(sql)
            return await cursor.fetchall()
    if isinstance(connection, asyncpg.Connection):
        return await connection.fetch(sql)
    return connection.execute(sql).fetchall()


@dataclass
class On:
    """A queue on a store, one kind of jobs, and what became of what was pushed and written."""

    name: str
    url: str
    store: Store
    queue: Queue
    kind: Kind[int]
    ran: asyncio.Queue[int]

    async def write(self, connection: Any, number: int) -> None:
        """A row of the app's, and a job."""
        await execute(connection, f"INSERT INTO accounts (kind, name) VALUES ('{self.kind.name}', {number})")
        await self.kind.in_(connection).push(number)

    async def kept(self) -> list[int]:
        """What is there for others: jobs, and the app's rows, which must be the same."""
        jobs = [int(job.payload) for job in await self.store.jobs(now=0, kind=self.kind.name, limit=1000)]
        assert sorted(jobs) == self._accounts()
        return jobs

    def _accounts(self) -> list[int]:
        query = text("SELECT name FROM accounts WHERE kind = :kind ORDER BY name")
        with sync_engine(self.url, SYNC_DRIVERS[self.name]) as engine, engine.connect() as connection:
            return list(connection.execute(query, {"kind": self.kind.name}).scalars())

    async def cut(self, connection: Any) -> None:
        """Have the server end a connection."""
        if self.name == "postgres":
            (row,) = await execute(connection, "SELECT pg_backend_pid()")
            other = await asyncpg.connect(self.url)
            await other.execute(f"SELECT pg_terminate_backend({row[0]})")
            await other.close()
        else:
            async with asyncmy.connect(**arguments_of(self.url)) as other:
                await execute(other, f"KILL CONNECTION {connection.thread_id()}")


@pytest.fixture(params=["sqlite", "postgres", "mysql"])
async def on(request: pytest.FixtureRequest) -> AsyncGenerator[On]:
    name = request.param
    url = request.getfixturevalue(f"{name}_place")
    store = store_at(name, url)
    queue, ran = Queue(store, poll=3600), asyncio.Queue[int]()

    async def run(number: int) -> None:
        ran.put_nowait(number)

    kind = queue.handle(f"kind-{next(numbers)}", run)
    with sync_engine(url, SYNC_DRIVERS[name]) as engine, engine.begin() as connection:
        connection.execute(text("CREATE TABLE IF NOT EXISTS accounts (kind VARCHAR(40), name INTEGER)"))
    async with queue:
        yield On(name, url, store, queue, kind, ran)


on_postgres = pytest.mark.parametrize("on", ["postgres"], indirect=True)
on_mysql = pytest.mark.parametrize("on", ["mysql"], indirect=True)
on_sqlite = pytest.mark.parametrize("on", ["sqlite"], indirect=True)
on_a_server = pytest.mark.parametrize("on", ["postgres", "mysql"], indirect=True)


async def test_rows_and_jobs_are_kept_together_and_the_workers_woken_after_the_commit(on: On) -> None:
    async with running(on.queue):
        async with on.queue.transaction() as connection:
            await on.write(connection, 1)
            assert await on.kept() == []
        assert await soon(on.ran.get()) == 1


@pytest.mark.parametrize("error", [ZeroDivisionError("none of ours"), ConnectionResetError("of another server")])
async def test_an_error_in_the_block_rolls_back_and_comes_out_as_it_is(on: On, error: Exception) -> None:
    async def block() -> None:
        async with on.queue.transaction() as connection:
            await on.write(connection, 1)
            raise error

    with pytest.raises(type(error)) as raised:
        await block()
    assert raised.value is error
    assert await on.kept() == []
    async with on.queue.transaction() as connection:
        await on.write(connection, 2)
    assert await on.kept() == [2]


async def test_wherever_it_is_cancelled_all_is_kept_or_nothing_and_the_next_can_write_at_once(on: On) -> None:
    async def one(number: int) -> None:
        async with on.queue.transaction() as connection:
            await on.write(connection, number)
            await asyncio.sleep(0)

    ends = set[bool]()
    for turns in range(60):
        task = asyncio.create_task(one(turns))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        ends.add(task.cancelled())
        await soon(on.kind.push(1000 + turns))
        async with on.queue.transaction() as connection:
            await execute(connection, f"INSERT INTO accounts (kind, name) VALUES ('{on.kind.name}', {1000 + turns})")
    assert True in ends
    kept = await on.kept()
    assert set(range(1000, 1060)) <= set(kept)
    assert len(kept) == len(set(kept))


async def test_a_savepoint_that_is_rolled_back_takes_its_push_along(on: On) -> None:
    async with on.queue.transaction() as connection:
        await on.write(connection, 1)
        await execute(connection, "SAVEPOINT here")
        await on.write(connection, 2)
        await execute(connection, "ROLLBACK TO SAVEPOINT here")
        await on.write(connection, 3)
    assert await on.kept() == [1, 3]


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
async def test_a_transaction_that_the_block_ends_itself_is_told_of(on: On, end: str) -> None:
    async def block() -> None:
        async with on.queue.transaction() as connection:
            await on.write(connection, 1)
            await execute(connection, end)
            with pytest.raises(TransactionRefused, match="no transaction open"):
                await on.kind.in_(connection).push(2)

    with pytest.raises(TransactionEnded, match="committed or rolled back"):
        await block()
    assert await on.kept() == ([1] if end == "COMMIT" else [])
    async with on.queue.transaction() as connection:
        await on.write(connection, 3)
    assert 3 in await on.kept()


async def test_a_transaction_inside_another_is_refused_and_the_outer_one_goes_on(on: On) -> None:
    async with on.queue.transaction() as connection:
        with pytest.raises(TwoTransactions, match="use the connection that the outer one gave"):
            async with on.queue.transaction():
                pytest.fail("it was to be refused")
        await on.write(connection, 1)
    assert await on.kept() == [1]


async def test_transactions_of_several_tasks_are_apart_and_more_than_there_is_room_for_wait(on: On) -> None:
    async def one(number: int) -> None:
        async with on.queue.transaction() as connection:
            await on.write(connection, number)
            await asyncio.sleep(0.001)
            if number % 3 == 0:
                raise ZeroDivisionError

    ended = await soon(asyncio.gather(*(one(number) for number in range(20)), return_exceptions=True))
    assert sorted(await on.kept()) == [number for number in range(20) if number % 3]
    assert sum(isinstance(error, ZeroDivisionError) for error in ended) == 7


@on_a_server
async def test_pushes_outside_go_on_while_transactions_have_all_their_connections(on: On) -> None:
    together = asyncio.Barrier(4)

    async def one(number: int) -> None:
        async with on.queue.transaction():
            await together.wait()
            await on.kind.push(number)

    await soon(asyncio.gather(*(one(number) for number in range(4))))
    assert len(await on.store.jobs(now=0, kind=on.kind.name)) == 4


async def test_a_queue_that_was_closed_is_opened_again(on: On) -> None:
    await on.queue.close()
    async with on.queue.transaction() as connection:
        await on.write(connection, 1)
    assert await on.kept() == [1]


async def test_a_transaction_that_is_open_when_the_queue_is_closed_goes_on_to_its_end(on: On) -> None:
    async with on.queue.transaction() as connection:
        await on.write(connection, 1)
        await on.queue.close()
        await on.write(connection, 2)
    await on.queue.ready()
    assert await on.kept() == [1, 2]


@on_a_server
async def test_a_connection_that_is_cut_fails_the_block_and_not_the_next(on: On) -> None:
    async def block() -> None:
        async with on.queue.transaction() as connection:
            await on.write(connection, 1)
            await on.cut(connection)
            await on.write(connection, 2)

    with pytest.raises(CUT):
        await block()
    assert await on.kept() == []
    async with on.queue.transaction() as connection:
        await on.write(connection, 3)
    assert await on.kept() == [3]


@on_a_server
async def test_a_connection_that_is_cut_before_the_commit_is_no_commit(on: On) -> None:
    async def block() -> None:
        async with on.queue.transaction() as connection:
            await on.write(connection, 1)
            await on.cut(connection)

    with pytest.raises(CUT):
        await block()
    assert await on.kept() == []


PROGRAM = """
import asyncio, sys
from fastqueue import Queue
from tests.test_transaction import execute
from tests.handles import store_at

async def main(name, url, kind):
    queue = Queue(store_at(name, url))
    pushed = queue.kind(kind, int)
    async with queue, queue.transaction() as connection:
        await execute(connection, f"INSERT INTO accounts (kind, name) VALUES ('{kind}', 1)")
        await pushed.in_(connection).push(1)
        print("written", flush=True)
        await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.processes
async def test_a_process_that_is_killed_within_leaves_nothing_and_holds_nothing(on: On) -> None:
    root = str(Path(__file__).parents[1])
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PROGRAM,
        on.name,
        on.url,
        on.kind.name,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": root},
    )
    assert process.stdout is not None
    assert await soon(process.stdout.readline()) == b"written\n"
    process.kill()
    await process.wait()
    async with on.queue.transaction() as connection:
        await on.write(connection, 2)
    assert await on.kept() == [2]


@on_postgres
async def test_a_failed_statement_whose_error_was_caught_is_no_silent_rollback(on: On) -> None:
    async def block() -> None:
        async with on.queue.transaction() as connection:
            await on.write(connection, 1)
            with pytest.raises(asyncpg.UndefinedTableError):
                await connection.execute("SELECT * FROM nowhere")

    with pytest.raises(TransactionEnded, match="its error was caught"):
        await block()
    assert await on.kept() == []


@on_postgres
async def test_what_the_app_has_set_on_a_postgres_connection_is_gone_in_the_next(on: On) -> None:
    for _ in range(2):
        async with on.queue.transaction() as connection:
            assert await connection.fetchval("SHOW enable_seqscan") == "on", "the server's own settings"
            assert await connection.fetchval("SHOW lock_timeout") == "0"
            await connection.execute("SET lock_timeout = 1234")


@on_mysql
async def test_a_statement_of_mysql_s_that_commits_by_itself_is_told_of(on: On) -> None:
    async def block() -> None:
        async with on.queue.transaction() as connection:
            await execute(connection, f"CREATE TABLE `made_{on.kind.name}` (id INTEGER)")

    with pytest.raises(TransactionEnded):
        await block()


@on_sqlite
async def test_a_sqlite_transaction_has_the_lock_from_its_beginning(on: On) -> None:
    async with on.queue.transaction() as connection:
        push = asyncio.create_task(on.kind.push(1))
        await asyncio.wait({push}, timeout=0.05)
        assert not push.done(), "it waits for the lock"
        await on.kind.in_(connection).push(2)
    await soon(push)


async def test_a_server_that_cannot_be_reached_is_the_store_s_own_error() -> None:
    queue = Queue("postgresql://nobody@127.0.0.1:1/nowhere")
    with pytest.raises(StoreUnavailable):
        async with queue.transaction():
            pytest.fail("it was to be refused")
    await queue.close()


async def test_a_store_that_can_be_part_of_no_transaction_refuses_it() -> None:
    class Own(MemoryStore):
        name = "own"

    for store in (MemoryStore(), Own()):
        with pytest.raises(Unsupported, match=f"the {store.name} store can be part of no transaction"):
            async with Queue(store).transaction():
                pytest.fail("it was to be refused")

"""The PostgreSQL store's connections: few, never in doubt, and replaced by themselves."""

from __future__ import annotations

import asyncio
import gc
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import asyncpg
import pytest

from fastqueue.errors import StoreUnavailable
from fastqueue.outcome import Settlement
from fastqueue.stores.postgres import PostgresStore
from tests.servers import postgres
from tests.servers.throwaway import free_port, sandbox
from tests.stores.jobs import NOW, TOKENS, claimed, job, there, until
from tests.stores.postgres_rows import connected, opened

SESSIONS = """
    SELECT pid, state, query FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'fastqueue%'
"""

LOCK = "SELECT pg_advisory_xact_lock('fastqueue_jobs'::regclass::oid::int, hashtext('mail'))"
"""What a claim of limited jobs of the kind waits for."""


@pytest.fixture
async def admin(postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    async with connected(postgres_url) as connection:
        yield connection


@pytest.fixture
async def other(postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    async with connected(postgres_url) as connection:
        yield connection


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    async with opened(postgres_url, pool_size=3) as store:
        yield store


async def wait_for_lock(admin: asyncpg.Connection, waiting: int = 1) -> None:
    async def blocked() -> bool:
        rows = await admin.fetch(f"{SESSIONS} AND wait_event_type = 'Lock'")
        return len(rows) == waiting

    await until(blocked)


async def test_a_process_has_a_stated_number_of_connections_at_most(
    store: PostgresStore, admin: asyncpg.Connection
) -> None:
    async def each(n: int) -> None:
        await store.push([job(n)], now=NOW)
        await store.settle([Settlement.done(each) for each in await claimed(store, 1)])
        await store.counts(NOW)
        await there(store.wakes).tell()

    await asyncio.gather(*map(each, range(60)))
    assert len(await admin.fetch(SESSIONS)) <= 3 + 3
    assert await store.jobs(now=NOW) == []


async def test_an_app_that_pushes_one_job_after_the_other_has_one_connection(
    store: PostgresStore, admin: asyncpg.Connection
) -> None:
    for n in range(10):
        await store.push([job(n)], now=NOW)
    assert len(await admin.fetch(SESSIONS)) == 1


async def test_claims_settles_and_pushes_do_not_wait_for_each_other(
    store: PostgresStore, admin: asyncpg.Connection, other: asyncpg.Connection
) -> None:
    await store.push([job(1, kind="first"), job(2, at_once=2), job(3, at_once=2)], now=NOW)
    [first] = await claimed(store, kinds=("first",))
    async with other.transaction():
        await other.execute(LOCK)
        await other.execute("INSERT INTO fastqueue_throttles VALUES ('a', 1, 0)")
        claim = asyncio.create_task(claimed(store))
        hits = [asyncio.create_task(there(store.throttles).hit("a", now=NOW, window_ms=1)) for _ in range(2)]
        await wait_for_lock(admin, 3)
        assert await store.settle([Settlement.done(first)]) == [True]
        assert (await store.push([job(4)], now=NOW))[0].new
    await asyncio.gather(*hits)
    assert len(await claim) == 2


async def test_claims_cancelled_at_any_point_leave_every_connection_usable_and_no_job_behind(
    store: PostgresStore, admin: asyncpg.Connection
) -> None:
    await store.push([job(n, at_once=1000 * (n % 2), hold_ms=1) for n in range(300)], now=NOW)
    moments = random.Random(34)
    ends = Counter[str]()
    for _ in range(300):
        task = asyncio.create_task(claimed(store, 2))
        await asyncio.sleep(moments.choice((0, 0, 0.0005, 0.001, 0.002)))
        task.cancel()
        try:
            await task
            ends["taken"] += 1
        except asyncio.CancelledError:
            ends["cancelled"] += 1
    assert ends["cancelled"] > 0

    async def one_session() -> bool:
        return [row["state"] for row in await admin.fetch(f"{SESSIONS} AND query LIKE '%claim%'")] in ([], ["idle"])

    await until(one_session)
    found: set[int] = set()
    while jobs := await claimed(store, 100, now=NOW + 1):
        found |= {each.id for each in jobs}
        await store.settle([Settlement.done(each) for each in jobs])
    assert len(found) == 300


@pytest.mark.parametrize("in_use", [False, True])
async def test_backends_that_are_terminated_are_replaced(
    store: PostgresStore, admin: asyncpg.Connection, other: asyncpg.Connection, in_use: bool
) -> None:
    await store.push([job(n, at_once=5) for n in range(3)], now=NOW)
    terminate = f"SELECT pg_terminate_backend(pid) FROM ({SESSIONS}) ours"
    if in_use:
        async with other.transaction():
            await other.execute(LOCK)
            claim = asyncio.create_task(claimed(store))
            await wait_for_lock(admin)
            await admin.execute(terminate)
            with pytest.raises(StoreUnavailable, match=r"PostgreSQL at postgresql://postgres@.* is not available") as e:
                await claim
            assert isinstance(e.value.__cause__, asyncpg.PostgresError)
    else:
        await claimed(store, 1)
        await admin.execute(terminate)
        for verb in (lambda: claimed(store, 1), lambda: store.push([job(3)], now=NOW)):
            with suppress(StoreUnavailable):
                await verb()
    assert await claimed(store, 10)
    assert await store.push([job(4)], now=NOW)


async def test_a_server_that_does_not_answer_is_an_outage_that_shows_no_password() -> None:
    store = PostgresStore(f"postgresql://app:s3cret@127.0.0.1:{free_port()}/db")
    with pytest.raises(StoreUnavailable, match=r"postgresql://app@127\.0\.0\.1:\d+/db is not available") as refused:
        await store.open()
    assert "s3cret" not in str(refused.value)
    assert isinstance(refused.value.__cause__, OSError)
    await store.close()


async def test_a_statement_that_is_refused_costs_no_connection(store: PostgresStore, admin: asyncpg.Connection) -> None:
    await store.push([job()], now=NOW)
    before = [row["pid"] for row in await admin.fetch(SESSIONS)]
    with pytest.raises(asyncpg.PostgresError):
        await store.push([job(carried="\0")], now=NOW)
    assert [row["pid"] for row in await admin.fetch(SESSIONS)] == before


async def test_a_closed_store_leaves_no_connection_and_opens_again(
    store: PostgresStore, admin: asyncpg.Connection
) -> None:
    async def none_left() -> bool:
        return not await admin.fetch(SESSIONS)

    await store.push([job()], now=NOW)
    await store.close()
    await store.close()
    await until(none_left)
    await store.open()
    assert len(await claimed(store)) == 1


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_store_opened_on_another_loop_forgets_the_first(postgres_url: str) -> None:
    store = PostgresStore(postgres_url)

    async def first() -> None:
        await store.open()
        await store.push([job()], now=NOW)

    async def second() -> int:
        await store.open()
        found = await store.claim(NOW, token=next(TOKENS), limit=10, queues=None, kinds=["mail"])
        await store.close()
        return len(found.jobs)

    asyncio.run(first())
    assert asyncio.run(second()) == 1
    gc.collect()  # the first loop's connection warns that nobody has closed it: here, and not in a later test


@pytest.mark.processes
async def test_a_server_that_is_started_again_is_found_again_and_wakes_again() -> None:
    binaries = postgres.system_binaries() or postgres.wheel_binaries(16)
    if binaries is None:
        pytest.skip("no PostgreSQL programs to start a server of our own")
    with sandbox() as box:
        data, port = box.folder / "data", free_port()
        box.run(binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync")
        url = f"postgresql://postgres@127.0.0.1:{port}/postgres"

        def serve() -> AbstractContextManager[None]:
            return box.serve(
                *server_command(binaries, data, port),
                answers=lambda: postgres._connect(url).close(),
                stop=signal.SIGINT,
            )

        woken = asyncio.Event()
        with serve():
            store = PostgresStore(url)
            wakes = there(store.wakes)
            await store.open()
            listening = asyncio.create_task(wakes.listen(woken.set))
            await woken.wait()
            await store.push([job()], now=NOW)
            assert len(await claimed(store)) == 1
        with pytest.raises(StoreUnavailable):
            await claimed(store)
        await until(lambda: not wakes.up)
        woken.clear()
        with serve():
            async with asyncio.timeout(10):
                await woken.wait()
            await until(lambda: wakes.up)
            woken.clear()
            await store.push([job()], now=NOW)
            async with asyncio.timeout(10):
                await woken.wait()
            assert len(await claimed(store)) == 1
            listening.cancel()
            await asyncio.wait({listening})
            await store.close()


def server_command(binaries: Path, data: Path, port: int) -> tuple[str | Path, ...]:
    settings = ("-c", "fsync=off", "-c", "unix_socket_directories=")
    return (binaries / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), *settings)

"""Connections: cancelled callers, cut-off and idle connections, a server that goes and comes back."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Coroutine
from contextlib import AbstractContextManager
from random import Random
from typing import Any

import pytest
from pymysql.cursors import Cursor

from fastqueue.errors import StoreUnavailable
from fastqueue.outcome import Settlement
from fastqueue.stores.mysql import MySQLStore
from fastqueue.stores.mysql._access import again
from fastqueue.stores.mysql._connections import _is_cut_off
from tests.servers import mysql
from tests.servers.throwaway import free_port, sandbox
from tests.stores.jobs import NOW, TOKENS, claimed, job, until
from tests.stores.mysql_rows import ask, connected, opened, running


@pytest.fixture
async def store(mysql_url: str) -> AsyncGenerator[MySQLStore]:
    async with opened(mysql_url, pool_size=2) as store:
        yield store


def sessions(cursor: Cursor) -> list[int]:
    """The connections to the test's database but its own."""
    cursor.execute(
        "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID() ORDER BY id"
    )
    return [id for (id,) in cursor.fetchall()]


def cut_off(store: MySQLStore) -> bool:
    """Whether the driver has seen the end of every idle connection."""
    return all(_is_cut_off(connection) for pool in store._access.here.pools for connection, _ in pool._idle)


async def cancelled(call: Coroutine[Any, Any, object], turns: int) -> bool:
    """Run a call for some turns of the loop, then cancel it; whether it had not ended by itself."""
    task = asyncio.ensure_future(call)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    return task.cancelled()


async def test_after_a_cancelled_caller_the_next_reads_no_answer_but_its_own(store: MySQLStore) -> None:
    pool, random = store._access.here.claims, Random(0)
    given_up = 0
    for _ in range(300):
        given_up += await cancelled(ask(pool, "SELECT 1"), random.randrange(6))
        assert await ask(pool, "SELECT 2") == [(2,)]
    assert given_up > 100


async def test_a_cancelled_call_leaves_no_lock_and_no_connection(store: MySQLStore, mysql_url: str) -> None:
    random = Random(1)
    with connected(mysql_url) as cursor:
        cursor.execute("SET innodb_lock_wait_timeout = 1")
        for n in range(60):
            await cancelled(
                store.push([job(1, unique_key=str(n), alone_key=str(n)), job(2)], now=NOW), random.randrange(14)
            )
            await cancelled(store.claim(NOW, token=next(TOKENS), limit=9, queues=None, kinds=["mail"]), n % 14)
            jobs = await claimed(store)
            await cancelled(store.renew(jobs, now=NOW, until=NOW + 99_000), n % 9)
            await cancelled(store.give_back(jobs), random.randrange(9))
            await cancelled(store.settle([Settlement.done(each) for each in jobs]), random.randrange(9))
            cursor.execute("BEGIN")
            for table in ("jobs", "slots", "held_kinds"):
                cursor.execute(f"SELECT * FROM fastqueue_{table} FOR UPDATE")
            cursor.execute("ROLLBACK")
        # One for each purpose, and no more of them than there were at once.
        assert len(sessions(cursor)) <= 1 + 1 + 1 + 2


async def test_a_cancelled_push_that_waits_for_a_lock_waits_no_longer(store: MySQLStore, mysql_url: str) -> None:
    with connected(mysql_url) as other:
        other.execute("BEGIN")
        other.execute("SELECT slot FROM fastqueue_slots FOR UPDATE")
        push = asyncio.ensure_future(store.push([job(unique_key="a")], now=NOW))
        await until(lambda: bool(running(other, "SELECT slot")))
        push.cancel()
        await asyncio.wait([push])
        assert running(other, "SELECT slot") == []
        other.execute("ROLLBACK")
    assert await store.jobs(now=NOW) == []
    assert [each.new for each in await store.push([job(unique_key="a")], now=NOW)] == [True]


async def test_a_connection_that_was_killed_while_idle_is_replaced_unnoticed(store: MySQLStore, mysql_url: str) -> None:
    await store.push([job(n) for n in range(3)], now=NOW)
    await claimed(store, 1)
    with connected(mysql_url) as cursor:
        for id in sessions(cursor):
            cursor.execute(f"KILL {id}")
        await until(lambda: cut_off(store))
        assert len(await claimed(store)) == 2
        assert [each.new for each in await store.push([job()], now=NOW)] == [True]


async def test_a_connection_that_was_killed_in_a_statement_is_the_store_not_being_available_for_once(
    store: MySQLStore, mysql_url: str
) -> None:
    await store.push([job()], now=NOW)
    with connected(mysql_url) as cursor:
        call = asyncio.ensure_future(ask(store._access.here.others, "SELECT SLEEP(30)"))

        await until(lambda: bool(running(cursor, "SELECT SLEEP")))
        cursor.execute(f"KILL {running(cursor, 'SELECT SLEEP')[0]}")
        with pytest.raises(StoreUnavailable, match="is not available") as raised:
            await call
        assert raised.value.__cause__ is not None
    assert len(await claimed(store)) == 1


async def test_a_connection_that_the_server_ends_for_being_idle_is_replaced_unnoticed(
    mysql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastqueue.stores.mysql._connections.FROZEN_AFTER", 1)
    monkeypatch.setattr("fastqueue.stores.mysql._connections.PROBED_AFTER", 0.5)
    async with opened(mysql_url) as store:
        await store.push([job(1), job(2)], now=NOW)
        assert len(await claimed(store, 1)) == 1
        with connected(mysql_url) as cursor:
            before = sessions(cursor)
            await until(lambda: len(sessions(cursor)) < len(before))
        assert len(await claimed(store, 1)) == 1


async def test_a_connection_is_asked_before_it_is_used_when_it_has_been_idle_for_long(
    store: MySQLStore, mysql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver may not have seen the end of a connection that was cut off without a word."""
    await store.push([job(1), job(2)], now=NOW)
    assert len(await claimed(store, 1)) == 1
    monkeypatch.setattr("fastqueue.stores.mysql._connections.PROBED_AFTER", 0.0)
    with connected(mysql_url) as cursor:
        for id in sessions(cursor):
            cursor.execute(f"KILL {id}")
        while sessions(cursor):
            pass  # and the event loop has no turn in which the driver would be told
    assert not cut_off(store)
    assert len(await claimed(store, 1)) == 1


async def test_a_connection_is_in_read_committed_and_forgets_its_locks_when_it_freezes(store: MySQLStore) -> None:
    here = store._access.here
    held_for = ((here.claims, 1, 30), (here.ends, 5, 30), (here.looks, 5, 300), (here.others, 5, 300))
    for pool, locks_within, idle_for in held_for:
        names = ("isolation", "innodb_lock_wait_timeout", "wait_timeout", "time_zone")
        rows = await ask(
            pool,
            "SHOW SESSION VARIABLES WHERE variable_name IN "
            "('tx_isolation', 'transaction_isolation', 'innodb_lock_wait_timeout', 'wait_timeout', 'time_zone')",
        )
        found = {name if name in names else "isolation": value for name, value in rows}
        assert found == dict(zip(names, ("READ-COMMITTED", str(locks_within), str(idle_for), "+00:00"), strict=True))


async def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastqueue.stores.mysql._connections.CONNECTS_WITHIN", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(StoreUnavailable, match="is not available: TimeoutError"):
            await MySQLStore(f"mysql://db@127.0.0.1:{port}/app").open()


async def test_a_statement_that_is_never_answered_is_given_up(
    store: MySQLStore, mysql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.push([job()], now=NOW)
    monkeypatch.setattr("fastqueue.stores.mysql._access.ANSWERS_WITHIN", 0.05)
    with connected(mysql_url) as other:
        other.execute("LOCK TABLES fastqueue_jobs WRITE")
        with pytest.raises(StoreUnavailable, match=r"is not available: no answer for 0\.05 s"):
            await claimed(store)
        other.execute("UNLOCK TABLES")
    monkeypatch.undo()
    assert len(await claimed(store)) == 1


async def test_calls_beyond_the_pool_s_size_wait_their_turn(store: MySQLStore, mysql_url: str) -> None:
    pushed = await asyncio.gather(*(store.push([job(n, unique_key=str(n))], now=NOW) for n in range(30)))
    assert len({each.id for (each,) in pushed}) == 30
    with connected(mysql_url) as cursor:
        assert len(sessions(cursor)) <= 2 + 1


async def test_a_statement_the_server_refuses_is_the_caller_s_error_and_harms_no_other(store: MySQLStore) -> None:
    with pytest.raises(Exception, match="nothing") as raised:
        await ask(store._access.here.others, "SELECT * FROM nothing")
    assert not isinstance(raised.value, StoreUnavailable)
    assert await ask(store._access.here.others, "SELECT 1") == [(1,)]


async def test_a_closed_store_leaves_no_connection(store: MySQLStore, mysql_url: str) -> None:
    await store.push([job()], now=NOW)
    await claimed(store)
    await store.close()
    with connected(mysql_url) as cursor:
        await until(lambda: sessions(cursor) == [])


def test_a_store_opened_on_another_loop_forgets_the_first(mysql_url: str) -> None:
    store = MySQLStore(mysql_url)

    async def first() -> None:
        await store.open()
        await store.push([job()], now=NOW)
        for pool in store._access.here.pools:
            await pool.close()

    async def second() -> int:
        await store.open()
        found = await claimed(store)
        await store.close()
        return len(found)

    asyncio.run(first())
    assert asyncio.run(second()) == 1


@pytest.mark.processes
async def test_a_server_that_is_started_again_is_found_again() -> None:
    binaries = mysql.system_binaries()
    if binaries is None:
        pytest.skip("no MariaDB programs to start a server of our own")
    with sandbox() as box:
        place = ("--no-defaults", f"--datadir={box.folder / 'data'}")
        box.run(binaries.install, *place, "--auth-root-authentication-method=normal", "--skip-test-db")
        port = free_port()
        url = f"mysql://root@127.0.0.1:{port}/mysql"

        def serve() -> AbstractContextManager[None]:
            options = (f"--socket={box.folder / 'socket'}", "--bind-address=127.0.0.1", f"--port={port}")
            return box.serve(binaries.server, *place, *options, answers=lambda: mysql.connect(url).close())

        store = MySQLStore(url)
        with serve():
            await store.open()
            await store.push([job(1), job(2)], now=NOW)
            (first,) = await claimed(store, 1)
        with pytest.raises(StoreUnavailable, match=f"MySQL at {url} is not available"):
            await store.push([job()], now=NOW)
        with pytest.raises(StoreUnavailable):
            await claimed(store)
        with serve():
            assert await store.settle([Settlement.done(first)]) == [True]
            assert len(await claimed(store)) == 1
            await store.close()


async def test_an_id_that_moved_jobs_have_taken_meanwhile_is_asked_for_anew(store: MySQLStore, mysql_url: str) -> None:
    tries = 0

    async def insert() -> int:
        nonlocal tries
        tries += 1
        # The first two are given an id that is taken, as by a portion that arrived meanwhile.
        with connected(mysql_url) as cursor:
            cursor.execute("CREATE TABLE IF NOT EXISTS ids (id INT PRIMARY KEY)")
            cursor.execute("INSERT IGNORE INTO ids VALUES (1), (2)")
        await ask(store._access.here.others, f"INSERT INTO ids VALUES ({tries})")
        return tries

    assert await again(insert) == 3

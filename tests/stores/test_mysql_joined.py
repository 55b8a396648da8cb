"""Pushes inside transactions of the app's, which may see an older state and may be rolled back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import pytest
from asyncmy import Connection, connect

from fastqueue.job import NewJob, Pushed
from fastqueue.outcome import Settlement
from fastqueue.stores.mysql import MySQLStore
from fastqueue.stores.mysql._address import Address
from tests.stores.jobs import NOW, claimed, job, there, until
from tests.stores.mysql_rows import connected, opened, running

ROUNDS = 12
STRICT = "innodb_snapshot_isolation"
"""MariaDB's setting by which a transaction is undone that is about to lock what it does not see; ON from 11.6 on."""

each_level = pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ", f"REPEATABLE READ, {STRICT}"])


@pytest.fixture
async def store(mysql_url: str) -> AsyncGenerator[MySQLStore]:
    async with opened(mysql_url) as store:
        yield store


@asynccontextmanager
async def begun(url: str, level: str) -> AsyncGenerator[Connection]:
    """A connection of the app's with a transaction open that has read something already."""
    connection = await connect(**Address.read(url).arguments)
    try:
        async with connection.cursor() as cursor:
            await cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level.partition(',')[0]}")
            await cursor.execute("SHOW VARIABLES LIKE %s", (STRICT,))
            if await cursor.fetchall():
                await cursor.execute(f"SET SESSION {STRICT} = {'ON' if STRICT in level else 'OFF'}")
            elif STRICT in level:
                pytest.skip(f"the server has no {STRICT}")
            await connection.begin()
            await cursor.execute("SELECT COUNT(*) FROM fastqueue_jobs")
        yield connection
    finally:
        await connection.ensure_closed()


async def push(store: MySQLStore, connection: Connection, jobs: Sequence[NewJob]) -> list[Pushed]:
    return await there(store.joins).enlist(connection).push(jobs, now=NOW)


async def register(
    store: MySQLStore, url: str, level: str, jobs: Sequence[NewJob], *, commits: bool = True
) -> list[Pushed]:
    """A transaction of the app's with a push in it."""
    async with begun(url, level) as connection:
        pushed = await push(store, connection, jobs)
        await (connection.commit() if commits else connection.rollback())
        return pushed


@each_level
async def test_of_five_transactions_with_one_key_the_one_that_commits_has_its_job(mysql_url: str, level: str) -> None:
    """Also when those before it, whose push it waited for, are rolled back."""
    async with opened(mysql_url) as store:
        for round in range(ROUNDS):
            key = f"key{round}"
            answers = await asyncio.gather(
                *(register(store, mysql_url, level, [job(n, unique_key=key)], commits=n == round % 5) for n in range(5))
            )
            kept = await store.jobs(now=NOW, after=0, limit=999)
            waiting = [each for each in kept if each.unique_key == key]
            assert len(waiting) == 1
            assert answers[round % 5] == [Pushed(waiting[0].id, new=True)]


@each_level
async def test_a_push_waits_for_the_transaction_that_has_pushed_its_key(mysql_url: str, level: str) -> None:
    async with opened(mysql_url) as store, begun(mysql_url, level) as first, begun(mysql_url, level) as second:
        await push(store, first, [job(1, unique_key="a")])
        waiting = asyncio.ensure_future(push(store, second, [job(2, unique_key="a")]))
        with connected(mysql_url) as cursor:
            await until(lambda: bool(running(cursor, "SELECT slot")))
        await first.commit()
        (pushed,) = await waiting
        assert not pushed.new
        await second.commit()
        assert [each.id for each in await claimed(store)] == [pushed.id]


@each_level
async def test_pushes_of_many_keys_in_opposite_order_get_on(mysql_url: str, level: str) -> None:
    async with opened(mysql_url) as store:
        for round in range(ROUNDS):
            new = [job(n, unique_key=f"{round}.{n}") for n in range(20)]

            answers = await asyncio.gather(
                *(register(store, mysql_url, level, new[:: 1 - 2 * (n % 2)]) for n in range(6))
            )
            assert sorted(sum(each.new for each in pushed) for pushed in answers) == [0] * 5 + [20]


@each_level
async def test_pushes_of_keys_of_their_own_do_not_wait_for_each_other(mysql_url: str, level: str) -> None:
    """Nor are they refused for one another, as they would be if they locked what is between the keys."""
    async with opened(mysql_url) as store, begun(mysql_url, level) as waits:
        await push(store, waits, [job(0, unique_key="user-0")])
        for round in range(ROUNDS):
            answers = await asyncio.gather(
                *(register(store, mysql_url, level, [job(unique_key=f"user-{round}.{n}")]) for n in range(6))
            )
            assert [each.new for (each,) in answers] == [True] * 6


@each_level
async def test_a_push_sees_the_job_that_waits_though_its_transaction_does_not(
    store: MySQLStore, mysql_url: str, level: str
) -> None:
    async with begun(mysql_url, level) as connection:
        (waiting,) = await store.push([job(1, unique_key="a")], now=NOW)
        assert await push(store, connection, [job(2, unique_key="a")]) == [Pushed(waiting.id, new=False)]
        await connection.commit()
    assert [each.id for each in await store.jobs(now=NOW)] == [waiting.id]


@each_level
async def test_a_push_moves_the_job_that_waits_and_a_rollback_moves_it_back(
    store: MySQLStore, mysql_url: str, level: str
) -> None:
    (waiting,) = await store.push([job(1, unique_key="a")], now=NOW)
    for moment, commits in ((NOW + 500, False), (NOW + 700, True)):
        moved = job(2, at=moment, unique_key="a", latest=True)
        assert await register(store, mysql_url, level, [moved], commits=commits) == [Pushed(waiting.id, new=False)]
        assert [each.run_ms for each in await store.jobs(now=NOW)] == [moment if commits else NOW]


@each_level
async def test_a_push_does_not_see_the_job_that_is_gone_though_its_transaction_does(
    store: MySQLStore, mysql_url: str, level: str
) -> None:
    """And to look for it locks nothing that pushes of others would wait for."""
    await store.push([job(n, unique_key=f"k{n}") for n in range(2)], now=NOW)
    async with begun(mysql_url, level) as one, begun(mysql_url, level) as two:
        assert await store.settle([Settlement.done(each) for each in await claimed(store)]) == [True, True]
        for connection, key in ((one, "k0"), (two, "k1")):
            assert [each.new for each in await push(store, connection, [job(unique_key=key)])] == [True]
        assert [each.new for each in await store.push([job(unique_key="k2")], now=NOW)] == [True]
        await one.commit()
        await two.commit()
    assert len(await claimed(store)) == 3


@each_level
async def test_a_transaction_meets_the_key_that_it_has_pushed_before(
    store: MySQLStore, mysql_url: str, level: str
) -> None:
    async with begun(mysql_url, level) as connection:
        (first,) = await push(store, connection, [job(1, unique_key="a")])
        assert first.new
        assert await push(store, connection, [job(2, unique_key="a"), job(3, unique_key="b")]) == [
            Pushed(first.id, new=False),
            Pushed(first.id + 1, new=True),
        ]
        await connection.rollback()
    assert await store.jobs(now=NOW) == []
    assert [each.new for each in await store.push([job(unique_key="a")], now=NOW)] == [True]


@each_level
async def test_the_job_that_a_refused_push_relies_on_starts_after_its_commit(
    store: MySQLStore, mysql_url: str, level: str
) -> None:
    """So its run sees what the transaction has changed."""
    (waiting,) = await store.push([job(1, unique_key="a")], now=NOW)
    async with begun(mysql_url, level) as connection:
        assert await push(store, connection, [job(2, unique_key="a")]) == [Pushed(waiting.id, new=False)]
        assert await claimed(store) == []
        await connection.commit()
    assert [each.id for each in await claimed(store)] == [waiting.id]


@each_level
async def test_a_lane_is_known_though_the_push_that_began_it_was_rolled_back(
    store: MySQLStore, mysql_url: str, level: str
) -> None:
    for end in ("rollback", "commit"):
        async with begun(mysql_url, level) as connection:
            await push(store, connection, [job(kind="new", queue="new", at_once=3)])
            await getattr(connection, end)()
    async with opened(mysql_url) as other:
        assert len(await claimed(other, kinds=("new",))) == 1


@each_level
async def test_pushes_of_the_store_s_own_that_wait_for_a_transaction_do_not_stop_it(mysql_url: str, level: str) -> None:
    async with opened(mysql_url, pool_size=1) as store, begun(mysql_url, level) as connection:
        await push(store, connection, [job(1, unique_key="a")])
        waiting = asyncio.ensure_future(store.push([job(2, unique_key="a")], now=NOW))
        assert [each.new for each in await push(store, connection, [job(3, kind="other", unique_key="b")])] == [True]
        await connection.commit()
        (pushed,) = await waiting
        assert not pushed.new

"""What is particular to the push on PostgreSQL: keys that meet in other transactions, order, notices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from fastqueue.errors import StoreUnavailable
from fastqueue.job import Pushed
from fastqueue.stores._sql import Call, Got, run
from fastqueue.stores.postgres import PostgresStore
from fastqueue.stores.postgres._connections import executor
from tests.stores.jobs import NOW, claimed, job
from tests.stores.postgres_rows import connected, opened


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    async with opened(postgres_url) as store:
        yield store


async def push_on(connection: asyncpg.Connection, store: PostgresStore, key: str) -> Pushed:
    """Push a job with a key within a transaction of the app's."""
    [pushed] = await run(store.push_steps([job(unique_key=key)], NOW), executor(connection))
    return pushed


async def count_jobs(store: PostgresStore) -> int:
    return len(await store.jobs(now=NOW, limit=10_000))


async def test_a_push_of_any_length_is_one_statement(store: PostgresStore) -> None:
    for jobs in ([job()], [job(), job()], [job(unique_key="a"), job(), job(unique_key="b", latest=True)]):
        calls: list[Call] = []

        async def execute(call: Call, calls: list[Call] = calls) -> Got:
            calls.append(call)
            return await store._access.here.others.run(call)

        assert len(await run(store.push_steps(jobs, NOW), execute)) == len(jobs)
        assert len(calls) == 1


async def test_ids_rise_in_the_order_given_though_keys_are_written_in_their_own(store: PostgresStore) -> None:
    keys = ["c", None, "a", "b", None, "a", "c"]
    pushed = await store.push([job(n, unique_key=key) for n, key in enumerate(keys)], now=NOW)
    made = [each.id for each in pushed if each.new]
    assert made == sorted(set(made))
    assert [each.new for each in pushed] == [True] * 5 + [False] * 2
    assert (pushed[5].id, pushed[6].id) == (pushed[2].id, pushed[0].id)
    assert [each.id for each in await claimed(store)] == made


async def test_pushes_of_one_key_in_one_call_come_to_what_they_would_one_by_one(store: PostgresStore) -> None:
    await store.push([job(0, at=NOW + 50, unique_key="waits")], now=NOW)
    pushed = await store.push(
        [
            job(1, at=NOW + 10, unique_key="new"),
            job(2, at=NOW + 20, unique_key="new", latest=True),
            job(3, at=NOW + 30, unique_key="new"),
            job(4, at=NOW + 10, unique_key="waits"),
            job(5, at=NOW + 20, unique_key="waits", latest=True),
        ],
        now=NOW,
    )
    assert [each.new for each in pushed] == [True, False, False, False, False]
    assert {each.unique_key: each.run_ms for each in await store.jobs(now=NOW)} == {"waits": NOW + 20, "new": NOW + 20}


async def test_bulk_pushes_of_the_same_keys_in_opposite_order_both_succeed(
    store: PostgresStore, postgres_url: str
) -> None:
    async with opened(postgres_url) as other:
        for latest in (False, True, False, True):
            jobs = [job(n, unique_key=f"k{n}", latest=latest) for n in range(100)]
            mixed = [job(n, unique_key=f"k{n}", latest=n % 2 == 0) for n in range(100)]
            answers = await asyncio.gather(
                *(store.push(jobs, now=NOW) for _ in range(4)), *(other.push(mixed[::-1], now=NOW) for _ in range(4))
            )
            new = sum(each.new for answer in answers for each in answer)
            assert new == len(await claimed(store, 1_000)) == 100


async def test_a_key_whose_pusher_rolled_back_is_not_lost(store: PostgresStore, postgres_url: str) -> None:
    """Five transactions push one key, and only the last of them commits."""
    last, pushed = asyncio.Event(), [asyncio.Event() for _ in range(5)]

    async def transaction(n: int) -> Pushed | None:
        async with connected(postgres_url) as connection:
            transaction = connection.transaction()
            await transaction.start()
            if n == 4:
                await last.wait()
            answer = await push_on(connection, store, "a")
            pushed[n].set()
            if n == 4:
                await transaction.commit()
                return answer
            await asyncio.sleep(0.01)
            if n == 0:
                last.set()
            await transaction.rollback()
            return None

    answers = await asyncio.gather(*(transaction(n) for n in range(5)))
    assert answers[-1] is not None
    assert [each.id for each in await claimed(store)] == [answers[-1].id]


async def test_a_push_waits_for_the_transaction_that_has_its_key(store: PostgresStore, postgres_url: str) -> None:
    async with connected(postgres_url) as connection:
        async with connection.transaction():
            first = await push_on(connection, store, "a")
            second = asyncio.create_task(store.push([job(unique_key="a")], now=NOW))
            await store.push([job(unique_key="b")], now=NOW)
            assert not second.done()
        assert await second == [Pushed(first.id, False)]


async def test_giving_back_does_not_wait_long_for_a_transaction_that_pushes_the_key(
    store: PostgresStore, postgres_url: str
) -> None:
    await store.push([job(1, unique_key="a"), job(2, unique_key="b")], now=NOW)
    jobs = await claimed(store)
    async with connected(postgres_url) as connection, connection.transaction():
        await push_on(connection, store, "a")
        assert await store.give_back(jobs) == [True, True]
        assert [each.unique_key for each in await store.jobs(now=NOW)] == [None, "b"]
    assert await count_jobs(store) == 3


async def test_a_notice_is_short_whatever_is_pushed(store: PostgresStore, postgres_url: str) -> None:
    heard: list[str] = []

    def hear(connection: object, pid: int, channel: str, tag: object) -> None:
        heard.append(str(tag))

    async with connected(postgres_url) as connection:
        await connection.add_listener(store._access.channel, hear)
        await store.push([job(queue="é" * 200, carried="x" * 1_000_000)], now=NOW)
        await store.push([job(n) for n in range(10_000)], now=NOW)
        await store.push([job(at=NOW + 1)], now=NOW)
        while len(heard) < 2:
            await connection.execute("SELECT 1")
    assert len(heard) == 2
    assert max(len(each.encode()) for each in heard) < 100


async def test_a_store_that_does_not_notify_is_silent(postgres_url: str) -> None:
    heard: list[object] = []

    def hear(connection: object, pid: int, channel: str, tag: object) -> None:
        heard.append(tag)

    async with opened(postgres_url, notify=False) as store, connected(postgres_url) as connection:
        await connection.add_listener(store._access.channel, hear)
        await store.push([job()], now=NOW)
        await connection.execute("SELECT 1")
    assert heard == []


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
async def test_a_text_that_cannot_be_kept_is_no_outage(store: PostgresStore, text: str) -> None:
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError)) as refused:
        await store.push([job(), job(carried=text)], now=NOW)
    assert not isinstance(refused.value, StoreUnavailable)
    assert await count_jobs(store) == 0

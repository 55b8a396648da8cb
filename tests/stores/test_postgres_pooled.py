"""The PostgreSQL store behind PgBouncer in transaction mode, where it is installed."""

from __future__ import annotations

import asyncio

import pytest

from fastqueue.errors import StoreUnavailable
from fastqueue.outcome import Settlement
from fastqueue.stores.postgres import PostgresStore
from tests.stores.jobs import NOW, claimed, job, there, until
from tests.stores.postgres_rows import opened

pytestmark = pytest.mark.processes


async def test_every_verb_works_without_anything_kept_on_a_connection(pooled_url: str) -> None:
    stores = [PostgresStore(pooled_url, pooled=True) for _ in range(4)]
    await asyncio.gather(*(store.open() for store in stores))

    async def work(store: PostgresStore) -> int:
        done = 0
        for n in range(20):
            await store.push([job(n, at_once=n % 2 * 3), job(n, unique_key=f"k{n}")], now=NOW)
            jobs = await claimed(store, 5)
            assert await store.renew(jobs, now=NOW, until=NOW + 60_000) == [True] * len(jobs)
            assert await store.give_back(jobs[3:]) == [True] * len(jobs[3:])
            done += sum(await store.settle([Settlement.done(each) for each in jobs[:3]]))
            await there(store.wakes).tell()
        return done

    done = sum(await asyncio.gather(*map(work, stores)))
    waiting = sum(count.waiting for count in await stores[0].counts(NOW))
    assert len({each.id for each in await stores[0].jobs(now=NOW, limit=1_000)}) == waiting
    assert done > 0
    for store in stores:
        await store.close()


async def test_notices_are_heard_by_an_address_of_the_server_itself(pooled_url: str, postgres_url: str) -> None:
    heard = asyncio.Event()
    async with opened(pooled_url, pooled=True, listen_dsn=postgres_url) as store:
        listening = asyncio.create_task(there(store.wakes).listen(heard.set))
        await until(lambda: there(store.wakes).up)
        heard.clear()
        await store.push([job()], now=NOW)
        await until(heard.is_set)
        listening.cancel()
        await asyncio.wait({listening})


async def test_a_store_that_was_not_told_of_the_pooler_says_how(pooled_url: str) -> None:
    with pytest.raises(StoreUnavailable, match="give the store pooled=True"):
        await PostgresStore(pooled_url).open()

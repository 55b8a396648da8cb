"""What a claim says is kept: a crash of the server takes neither the hold nor the attempt of a job that may run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from fastqueue.outcome import Settlement
from fastqueue.store import Store
from fastqueue.stores import store_of
from tests.faults.servers import server_of
from tests.stores.jobs import NOW, job


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[Store]:
    store = store_of(url)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@pytest.mark.parametrize("kind_of_store", ["postgres", "mysql"])
def test_a_claim_that_was_answered_outlives_a_crash_of_the_server(kind_of_store: str) -> None:
    async def claim_and_crash() -> Settlement:
        async with opened(server.url) as store:
            await store.push([job(1, at_once=1), job(2, at_once=1)], now=NOW)
            claim = await store.claim(NOW, token=1, limit=9, queues=None, kinds=["mail"])
            server.end()
        return Settlement.done(claim.jobs[0])

    async def look_and_settle(settlement: Settlement) -> None:
        async with opened(server.url) as store:
            assert (await store.claim(NOW, token=2, limit=9, queues=None, kinds=["mail"])).jobs == []
            assert [each.attempts for each in await store.jobs(state="running", now=NOW)] == [1]
            assert await store.settle([settlement]) == [True]

    with server_of(kind_of_store) as server:
        settlement = asyncio.run(claim_and_crash())
        server.start()
        asyncio.run(look_and_settle(settlement))

"""What the Redis server is asked to do: nothing twice, and nothing for what cannot be claimed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator

import pytest
from redis.asyncio import Redis

from fastqueue.outcome import Settlement
from fastqueue.stores.redis import RedisStore
from tests.stores.jobs import NOW, claimed, job, there
from tests.stores.redis_jobs import connected, opened, own_server


@pytest.fixture
async def server() -> AsyncGenerator[str]:
    with own_server() as url:
        yield url


@pytest.fixture
async def store(server: str) -> AsyncGenerator[RedisStore]:
    async with opened(server) as store:
        yield store


@pytest.fixture
async def admin(server: str) -> AsyncGenerator[Redis]:
    async with connected(server) as client:
        yield client


async def calls(admin: Redis) -> Counter[str]:
    """How often the server has run each command, those of scripts among them."""
    stats = await admin.info("commandstats")
    return Counter({name.removeprefix("cmdstat_"): told["calls"] for name, told in stats.items()})


async def test_nothing_asked_is_nothing_done(store: RedisStore, admin: Redis) -> None:
    before = await calls(admin)
    assert await store.push([], now=NOW) == []
    assert await store.settle([]) == []
    assert await store.give_back([]) == []
    assert await store.renew([], now=NOW, until=NOW) == []
    assert (await store.claim(NOW, token=1, limit=0, queues=None, kinds={"mail"})).jobs == []
    assert (await store.claim(NOW, token=1, limit=1, queues=[], kinds={"mail"})).jobs == []
    assert (await store.claim(NOW, token=1, limit=1, queues=None, kinds=[])).jobs == []
    assert (await calls(admin))["evalsha"] == before["evalsha"]


async def test_a_claim_costs_the_same_whatever_waits_that_it_cannot_take(store: RedisStore, admin: Redis) -> None:
    kinds = ("mail", "full", "back", "delayed")

    async def cost() -> int:
        await store.push([job(n) for n in range(10)], now=NOW)
        before = await calls(admin)
        took = await claimed(store, 10, kinds=kinds)
        after = await calls(admin)
        await store.settle([Settlement.done(each) for each in took])
        assert {each.kind for each in took} == {"mail"}
        return sum((after - before).values())

    await store.push([job(kind="full", at_once=1), job(kind="back")], now=NOW - 99)
    full, back = await claimed(store, kinds=kinds)
    assert await there(store.holds).hold_back(back, until=NOW + 99)
    await store.push([job(at=NOW - 9, kind=kind, at_once=1) for kind in ("full", "back", "unknown")], now=NOW)
    await store.push([job(at=NOW + 9, kind="delayed")], now=NOW)
    little = await cost()
    for kind in ("full", "back", "unknown", "delayed"):
        at = NOW + 9 if kind == "delayed" else NOW - 9
        for _ in range(4):
            await store.push([job(at=at, kind=kind, at_once=kind != "delayed")] * 2_500, now=NOW)
    assert await cost() == little
    assert await store.settle([Settlement.done(full)]) == [True]


async def test_scripts_are_sent_once_and_again_when_the_server_has_forgotten_them(
    store: RedisStore, admin: Redis
) -> None:
    await admin.script_flush()
    await store.push([job(1)], now=NOW)
    before = await calls(admin)
    await store.push([job(2)], now=NOW)
    assert (await calls(admin) - before)["eval"] == 0
    for _ in range(3):
        await admin.script_flush()
        assert len(await asyncio.gather(*(store.push([job(3)], now=NOW) for _ in range(5)))) == 5
    await admin.script_flush()
    took = await claimed(store)
    await admin.script_flush()
    assert await store.settle([Settlement.done(each) for each in took]) == [True] * 17

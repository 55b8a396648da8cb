from __future__ import annotations

import asyncio
import random

import pytest

from fastqueue.stores import store_of
from fastqueue.stores.mysql._connections import FROZEN_AFTER
from tests.processes.crew import Member, crew_of
from tests.processes.record import HOLD_MS, KIND, LIMIT, Record, fill, now_by

PROCESSES = 4
STORES = ["sqlite", "postgres", "mysql", "redis"]
LATE_MS = 3000
"""How late a crowded machine may be to claim what is free; a place that has leaked is never free again."""


async def kill_some(members: list[Member], url: str, claimers: int) -> None:
    """Kill one of the processes at random, again and again, and start another in its stead."""
    while True:
        await asyncio.sleep(random.uniform(0.2, 1))
        victim = random.choice(members)
        assert victim.works
        victim.kill()
        members.remove(victim)
        members.append(Member("claimers", url, claimers))
        assert await asyncio.to_thread(members[-1].hear) == "ready"


@pytest.mark.processes
@pytest.mark.parametrize(
    ("claimers", "seconds"),
    [pytest.param(4, 6, id="short"), pytest.param(13, 60, id="long", marks=pytest.mark.long)],
)
@pytest.mark.parametrize("name", STORES)
async def test_claimers_that_are_killed_at_random_never_hold_more_than_the_limit_nor_block_it_beyond_a_hold(
    name: str, claimers: int, seconds: float, request: pytest.FixtureRequest
) -> None:
    url: str = request.getfixturevalue(f"{name}_url")
    store = store_of(url)
    await store.open()
    await fill(store, int(seconds * 400))
    record = Record()
    with crew_of(PROCESSES, "claimers", url, claimers) as members:
        watching = asyncio.create_task(record.watch(store))
        killing = asyncio.create_task(kill_some(members, url, claimers))
        ended, going_on = await asyncio.wait({watching, killing}, timeout=seconds, return_when="FIRST_COMPLETED")
        for task in going_on:
            task.cancel()
        await asyncio.gather(*going_on, return_exceptions=True)
        for task in ended:
            task.result()

    # What the last ones held counts no more once their holds are over: nothing else takes a place.
    later = await now_by(store) + HOLD_MS
    left = await store.claim(later, token=1, limit=100, queues=None, kinds={KIND})
    await store.close()
    assert record.most == LIMIT
    assert record.blocked_ms <= HOLD_MS + LATE_MS
    assert len(left.jobs) == LIMIT


@pytest.mark.processes
async def test_a_process_that_is_killed_at_the_gate_of_a_kind_leaves_it_open(mysql_url: str) -> None:
    store = store_of(mysql_url)
    await store.open()
    await fill(store, 1)

    async def claimed() -> int:
        return len((await store.claim(await now_by(store), token=1, limit=1, queues=None, kinds={KIND})).jobs)

    with crew_of(1, "gatekeeper", mysql_url) as (gatekeeper,):
        assert await claimed() == 0
        gatekeeper.kill()
        # Well before the server would end a connection on which nothing is said.
        async with asyncio.timeout(FROZEN_AFTER / 3):
            while not await claimed():
                pass
    await store.close()

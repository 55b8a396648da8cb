"""What is particular to the memory store; its promises are checked by the conformance kit."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from types import FrameType
from typing import Any

import pytest

from fastqueue.job import Claimed, NewJob
from fastqueue.outcome import Settlement
from fastqueue.store import Keep
from fastqueue.stores.memory import MemoryStore

MINUTE = 60_000


def jobs(count: int, **asks: Any) -> list[NewJob]:
    return [NewJob(kind="count", payload="{}", run_at=n % 7, hold_ms=MINUTE, **asks) for n in range(count)]


async def claim(store: MemoryStore, token: int, *, limit: int = 1) -> list[Claimed]:
    return (await store.claim(10, token=token, limit=limit, queues=None, kinds=["count"])).jobs


def test_it_keeps_everything_and_has_every_faculty_that_needs_no_server() -> None:
    store = MemoryStore()
    assert store.keeps == set(Keep)
    assert None not in (store.schedules, store.holds, store.failed, store.throttles)
    assert (store.joins, store.wakes, store.time, store.migrates) == (None, None, None, None)


def test_it_is_used_from_one_event_loop_after_another() -> None:
    store = MemoryStore()
    asyncio.run(store.open())
    asyncio.run(store.push(jobs(1), now=0))
    [claimed] = asyncio.run(claim(store, 1))
    asyncio.run(store.close())
    assert asyncio.run(store.settle([Settlement.done(claimed)])) == [True]


async def test_closing_keeps_the_jobs() -> None:
    store = MemoryStore()
    await store.push(jobs(1), now=0)
    await store.close()
    await store.open()
    assert len(await claim(store, 1)) == 1


async def test_two_stores_have_nothing_in_common() -> None:
    await MemoryStore().push(jobs(1), now=0)
    assert await claim(MemoryStore(), 1) == []


async def test_another_object_on_the_same_jobs_shares_everything() -> None:
    store = MemoryStore()
    again = store.again().again()
    await store.push(jobs(1), now=0)
    [claimed] = await claim(again, 1)
    assert store.holds
    assert await store.holds.hold_back(claimed, until=MINUTE)
    assert await claim(again, 2) == []


async def test_the_hint_is_the_earliest_moment_over_all_lanes_asked_for() -> None:
    store = MemoryStore()
    await store.push(
        [
            NewJob(kind="count", payload="{}", run_at=50),
            NewJob(kind="count", payload="{}", run_at=40, alone_key="a"),
            NewJob(kind="count", payload="{}", run_at=30, queue="slow"),
            NewJob(kind="other", payload="{}", run_at=20),
        ],
        now=0,
    )
    for queues, expected in ((None, 30), (["default"], 40), (["none"], None)):
        assert await store.claim(10, token=1, limit=1, queues=queues, kinds=["count"]) == ([], expected)


@pytest.mark.parametrize(
    "asks",
    [{}, {"at_once": 3}, {"unique_key": "a", "latest": True}],
    ids=["free", "limited", "one key"],
)
async def test_the_work_grows_with_the_jobs_and_no_faster(asks: dict[str, Any]) -> None:
    steps = {count: await counted(push_and_drain(count, **asks)) for count in (250, 2_000)}
    assert steps[2_000] < 8 * 1.5 * steps[250]


async def test_a_claim_costs_the_same_however_many_jobs_are_held_or_wait() -> None:
    steps: list[int] = []
    for count in (100, 10_000):
        store = MemoryStore()
        await store.push(jobs(2 * count), now=0)
        await claim(store, 1, limit=count)
        steps.append(await counted(claim(store, 2, limit=10)))
    assert steps[1] < 1.5 * steps[0]


async def push_and_drain(count: int, **asks: Any) -> None:
    store = MemoryStore()
    await store.push(jobs(count, **asks), now=0)
    token = 0
    while claimed := await claim(store, token := token + 1):
        await store.settle([Settlement.done(each) for each in claimed])


async def counted(work: Awaitable[object]) -> int:
    """How many calls and lines of Python some work takes: a measure of its growth that no busy machine changes."""
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        await work
    finally:
        sys.settrace(before)
    return count

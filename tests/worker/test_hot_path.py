"""What many quick jobs meet: how much is claimed ahead, how often the store is asked, and who else gets a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Any

import pytest

from fastqueue import Queue, Throttle, Unique
from fastqueue.job import Moment
from fastqueue.store import Claim
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import FakeClock
from fastqueue.worker.claim import HORIZON_AT_ONCE, MOST, LookAhead
from tests.worker.stage import A_WHILE, Observed, running, soon, until


class Counting(MemoryStore):
    """Notes of each claim how much was asked for and how much was given."""

    def __init__(self) -> None:
        super().__init__()
        self.claims: list[tuple[int, int]] = []

    async def claim(
        self, now: Moment, *, token: int, limit: int, queues: Sequence[str] | None, kinds: Collection[str]
    ) -> Claim:
        claim = await super().claim(now, token=token, limit=limit, queues=queues, kinds=kinds)
        self.claims.append((limit, len(claim.jobs)))
        return claim


async def test_a_lone_job_costs_its_claim_and_one_look_at_its_end(observed: Observed) -> None:
    store = Counting()
    queue = Queue(store, poll=3600, observe=observed)

    @queue.handle("greet")
    async def greet(name: str) -> None:
        return None

    async def has_looked() -> bool:
        return bool(store.claims)

    async def has_looked_again() -> bool:
        return len(store.claims) == 3

    async with running(queue):
        await until(has_looked)
        await greet.push("Ann")
        await observed.next()
        await until(has_looked_again)
        await asyncio.sleep(A_WHILE)
    assert [given for _, given in store.claims] == [0, 1, 0]


async def test_a_store_that_answers_at_once_leaves_turns_to_others(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastqueue.worker.crew.TURN", 3600.0)
    queue, left, over, turns = Queue("memory://", clock=clock), 2000, asyncio.Event(), 0

    @queue.handle("count")
    async def count(number: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            over.set()

    async def others() -> None:
        nonlocal turns
        while not over.is_set():
            turns += 1
            await asyncio.sleep(0)

    await count.push_many(range(left))
    beside = asyncio.create_task(others())
    async with running(queue):
        await soon(over.wait())
        await beside
    assert turns >= 2000 / (4 + MOST)


@pytest.mark.parametrize("limits", [{}, {"unique": Unique(one_at_a_time=True)}, {"at_once": 50}])
async def test_quick_jobs_are_claimed_ahead(clock: FakeClock, observed: Observed, limits: dict[str, Any]) -> None:
    assert await most_asked_for(clock, observed, 0, **limits) > 4


@pytest.mark.parametrize(("seconds", "limits"), [(0.003, {"at_once": 50}), (0, {"rate": Throttle(1000, 1)}), (0.1, {})])
async def test_jobs_that_would_hold_a_place_of_others_for_long_are_claimed_for_free_workers_only(
    clock: FakeClock, observed: Observed, seconds: float, limits: dict[str, Any]
) -> None:
    assert await most_asked_for(clock, observed, seconds, **limits) == 4


async def most_asked_for(clock: FakeClock, observed: Observed, seconds: float, **limits: Any) -> int:
    """The most jobs that a claim of four workers asked for, while they ran 500 of so many seconds each."""
    store = Counting()
    queue = Queue(store, clock=clock, workers=4, observe=observed)

    @queue.handle("count", **limits)
    async def count(number: int) -> None:
        clock.move(seconds)

    await count.push_many(range(500))
    async with running(queue):
        for _ in range(500):
            await observed.next()
    return max(limit for limit, _ in store.claims)


def test_the_window_grows_by_full_claims_once_as_many_runs_have_ended() -> None:
    ahead, sizes = LookAhead(4), list[int]()
    for _ in range(7):
        ahead.claimed(full=True)
        sizes.append(ahead.size)
        for _ in range(max(ahead.size, 4)):
            ahead.ran(0.0001)
    assert sizes == [0, 4, 8, 16, 32, 64, 100]


def test_many_workers_have_a_window_of_as_many_jobs() -> None:
    ahead = LookAhead(5 * MOST)
    for _ in range(5 * MOST):
        ahead.ran(0.0001)
    ahead.claimed(full=True)
    assert ahead.size == 5 * MOST


def test_the_window_is_cut_at_once_to_what_the_run_times_allow() -> None:
    ahead = LookAhead(4)
    for _ in range(8):
        for _ in range(100):
            ahead.ran(0.0001)
        ahead.claimed(full=True)
    assert ahead.size == MOST
    ahead.ran(0.01)
    assert 4 <= ahead.size < MOST
    ahead.ran(1.0)
    assert ahead.size == 0


def test_jobs_with_at_once_cut_the_window_to_what_starts_while_a_claim_would_take() -> None:
    ahead = LookAhead(4)
    for _ in range(8):
        for _ in range(100):
            ahead.ran(0.0001)
        ahead.claimed(full=True)
    ahead.claimed(full=True, at_once=True)
    assert ahead.size == 0, "nothing is known yet of how long they run"
    for _ in range(8):
        for _ in range(100):
            ahead.ran(0.0001, at_once=True)
        ahead.claimed(full=True, at_once=True)
    assert ahead.size == 4 * HORIZON_AT_ONCE / 0.0001
    ahead.claimed(full=True, rate=True)
    assert ahead.size == 0

"""The claimer: when it looks for work, how much it takes, and what it does while the store is down."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from contextvars import ContextVar

import pytest

from fastqueue import Queue, Throttle
from fastqueue.errors import StoreUnavailable
from fastqueue.job import Moment
from fastqueue.store import Claim
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import FakeClock
from tests.worker.stage import A_WHILE, Faulty, Observed, kept, lines, running, soon, until


async def idle(queue: Queue) -> None:
    """Until the queue has looked for work once and found none."""

    async def has_looked() -> bool:
        return queue.worker is not None and queue.worker.claimed_at is not None

    await until(has_looked)
    await asyncio.sleep(0.05)


async def test_a_push_wakes_an_idle_queue_at_once(store: MemoryStore, observed: Observed) -> None:
    queue = Queue(store, poll=3600, observe=observed)

    @queue.handle("greet")
    async def greet(name: str) -> None:
        return None

    async with running(queue):
        await idle(queue)
        await greet.push("Ann")
        assert (await observed.next()).outcome == "done"


async def test_a_job_for_later_is_looked_for_at_its_moment_and_not_at_the_next_poll(
    store: MemoryStore, observed: Observed
) -> None:
    queue = Queue(store, poll=3600, observe=observed)

    @queue.handle("greet")
    async def greet(name: str) -> None:
        return None

    await greet.push("before the start", delay=0.05)
    async with running(queue):
        assert (await observed.next()).outcome == "done"
        await idle(queue)
        await greet.push("while it waits", delay=0.05)
        assert (await observed.next()).outcome == "done"


async def test_a_kind_goes_on_when_its_rate_allows_it_and_not_at_the_next_poll(
    store: MemoryStore, observed: Observed
) -> None:
    queue = Queue(store, poll=3600, observe=observed)

    @queue.handle("greet", rate=Throttle(1, 0.05))
    async def greet(name: str) -> None:
        return None

    async with running(queue):
        await greet.push_many(["Ann", "Bob", "Cid"])
        done = 0
        while done < 3:
            done += (await observed.next()).outcome == "done"


async def test_a_queue_finds_by_its_poll_what_another_process_pushed(store: MemoryStore, observed: Observed) -> None:
    worker, web = Queue(store, poll=0.01, observe=observed), Queue(store.again())

    @worker.handle("greet")
    async def greet(name: str) -> None:
        return None

    pushed_only = web.kind("greet", str)
    async with running(worker):
        await idle(worker)
        await pushed_only.push("Ann")
        assert (await observed.next()).outcome == "done"


async def test_no_more_jobs_run_at_once_than_there_are_workers(store: MemoryStore, observed: Observed) -> None:
    queue, started = Queue(store, workers=2, poll=0.01, observe=observed), asyncio.Queue[str]()
    at_once, most, release = 0, 0, asyncio.Semaphore(0)

    @queue.handle("greet")
    async def greet(name: str) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        started.put_nowait(name)
        await release.acquire()
        at_once -= 1

    await greet.push_many(["Ann", "Bob", "Cid"])
    async with running(queue):
        assert [await soon(started.get()) for _ in range(2)] == ["Ann", "Bob"]
        await asyncio.sleep(A_WHILE)
        assert started.empty()
        third = [job for job in await kept(store) if job.held_ms is None]
        assert [job.attempts for job in third] == [0], "what cannot start is not claimed"
        release.release()
        assert await soon(started.get()) == "Cid"
        release.release()
        release.release()
        for _ in range(3):
            await observed.next()
    assert most == 2


async def test_what_waits_behind_a_long_job_is_given_back_for_other_instances(observed: Observed) -> None:
    store, here, there = Faulty(), list[int](), list[int]()
    queue, other = Queue(store, workers=1, observe=observed), Queue(store.again(), observe=observed)
    begun, release, done = asyncio.Event(), asyncio.Event(), asyncio.Event()
    long = 300

    @queue.handle("count")
    async def count(number: int) -> None:
        if number == long:
            begun.set()
            await release.wait()
        here.append(number)

    @other.handle("count")
    async def count_there(number: int) -> None:
        there.append(number)
        if number == 2 * long - 1:
            done.set()

    await count.push_many(range(2 * long))
    async with running(queue):
        await soon(begun.wait())

        async def gave_back() -> bool:
            return bool(store.given_back)

        await until(gave_back)
        left = [job for job in await kept(store) if job.payload != str(long)]
        assert [job.attempts for job in left] == [0] * (long - 1)
        async with running(other):
            await soon(done.wait())
        release.set()
        while (await observed.next()).id != long + 1:
            pass
    assert here == list(range(long + 1))
    assert there == list(range(long + 1, 2 * long))


async def test_a_store_that_is_down_for_a_while_is_logged_and_the_queue_goes_on_by_itself(
    observed: Observed, caplog: pytest.LogCaptureFixture
) -> None:
    queue = Queue(Faulty(claiming=[StoreUnavailable("no route to it")] * 3), poll=0.01, observe=observed)

    @queue.handle("greet")
    async def greet(name: str) -> None:
        return None

    await greet.push("Ann")
    async with running(queue):
        assert (await observed.next()).outcome == "done"
    errors = lines(caplog, logging.ERROR)
    assert len(errors) == 3
    assert all(line.startswith("a claim failed: error='no route to it' again_in=") for line in errors)


async def test_health_is_red_while_the_store_is_down_and_green_again_after(observed: Observed) -> None:
    queue = Queue(Faulty(claiming=[ZeroDivisionError("broken")]), poll=0.2, observe=observed)

    @queue.handle("greet")
    async def greet(name: str) -> None:
        return None

    await greet.push("Ann")
    async with running(queue):

        async def red() -> bool:
            return queue.state == "running" and not (await queue.health()).ready

        await until(red)
        await observed.next()
        health = await queue.health()
    assert (health.ready, health.store, health.state) == (True, "ok", "running")
    assert health.last_claim is not None


async def test_unknown_kinds_are_left_alone_and_named_by_health_until_someone_knows_them(
    store: MemoryStore, clock: FakeClock
) -> None:
    new, old = Queue(store, clock=clock), Queue(store.again(), clock=clock)
    seen: list[str] = []

    @new.handle("greet")
    async def greet_new(name: str) -> None:
        seen.append(f"new {name}")

    @new.handle("part")
    async def part(name: str) -> None:
        seen.append(f"part {name}")

    @old.handle("greet")
    async def greet_old(name: str) -> None:
        seen.append(f"old {name}")

    for number in range(10):
        await part.push(str(number))
        await greet_new.push(str(number))
    assert await old.drain() == 10
    clock.move(3600)
    assert await old.drain() == 0
    assert {(job.kind, job.attempts, job.failed_ms) for job in await kept(store)} == {("part", 0, None)}
    health = await old.health()
    assert health.unclaimed == ["part"]
    assert health.oldest == 3600
    assert await new.drain() == 10
    assert (await old.health()).unclaimed == []
    assert len(seen) == 20


async def test_the_first_named_queue_comes_before_the_second_and_others_are_not_served(
    store: MemoryStore, clock: FakeClock
) -> None:
    queue, seen = Queue(store, clock=clock, queues=["urgent", "default"]), list[str]()

    @queue.handle("greet")
    async def greet(name: str) -> None:
        seen.append(name)

    await greet.push("ordinary")
    clock.move(1)
    await greet.push("urgent", queue="urgent")
    await greet.push("nightly", queue="nightly")
    await queue.drain()
    assert seen == ["urgent", "ordinary"]


async def test_each_run_has_a_fresh_context(store: MemoryStore, observed: Observed) -> None:
    left_behind: ContextVar[str] = ContextVar("left_behind", default="nothing")
    queue, seen = Queue(store, workers=1, observe=observed), list[str]()

    @queue.handle("greet")
    async def greet(name: str) -> None:
        seen.append(left_behind.get())
        left_behind.set(name)

    left_behind.set("by whoever starts the queue")
    await greet.push_many(["Ann", "Bob"])
    async with running(queue):
        await observed.next()
        await observed.next()
    assert seen == ["nothing", "nothing"]


async def test_a_claim_that_is_answered_after_its_hold_starts_no_job_that_others_may_have(
    clock: FakeClock, observed: Observed
) -> None:
    class Slow(MemoryStore):
        """Its first answer with jobs comes when their holds are over."""

        slow = True

        async def claim(
            self, now: Moment, *, token: int, limit: int, queues: Sequence[str] | None, kinds: Collection[str]
        ) -> Claim:
            claim = await super().claim(now, token=token, limit=limit, queues=queues, kinds=kinds)
            if claim.jobs and self.slow:
                self.slow = False
                clock.move(3600)
            return claim

    queue = Queue(Slow(), poll=0.05, clock=clock, observe=observed)

    @queue.handle("greet")
    async def greet(name: str) -> None:
        return None

    await greet.push("Ann")
    async with running(queue):
        ran = await observed.next()
    # The late claim was given back, its attempt with it.
    assert (ran.attempt, ran.outcome) == (1, "done")
    assert len(observed.all) == 1


async def test_a_job_whose_hold_is_over_before_it_starts_is_given_back_and_claimed_anew(
    clock: FakeClock, observed: Observed
) -> None:
    store = Faulty()
    queue = Queue(store, workers=2, poll=0.05, clock=clock, observe=observed)
    frozen = False

    @queue.handle("greet")
    async def greet(name: str) -> None:
        nonlocal frozen
        if not frozen:
            frozen = True
            clock.move(3600)  # as if this process had stood still between two starts

    await greet.push_many(["Ann", "Bob"])
    async with running(queue):
        while {ran.id for ran in observed.all} < {1, 2}:
            await observed.next()
    assert store.given_back == [2]
    assert [(ran.attempt, ran.outcome) for ran in observed.all if ran.id == 2] == [(1, "done")]

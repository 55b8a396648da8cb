"""How a queue stops: grace, then the cancel, then the tail; and what becomes of the jobs it cut."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from typing import Any

import anyio
import pytest

import fastqueue.worker.crew
from fastqueue import Permanent, Queue, constant
from fastqueue.clock import Clock
from fastqueue.job import Claimed, Moment
from fastqueue.outcome import Settlement
from fastqueue.store import Claim, Holds
from fastqueue.stores.memory import MemoryStore
from tests.worker.stage import A_WHILE, Faulty, Observed, kept, lines, running, soon, stopped, taken, until

AT_ONCE = 0.001
"""A grace that is over at once; 0 would be the job's own time limit."""


async def bare() -> None:
    await asyncio.Event().wait()


async def in_a_task_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(bare())


async def in_an_anyio_group() -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(bare)


async def answering_with_an_error() -> None:
    try:
        await bare()
    except asyncio.CancelledError:
        raise ValueError("half done") from None


async def answering_that_it_is_permanent() -> None:
    try:
        await bare()
    except asyncio.CancelledError:
        raise Permanent("half done") from None


class AnsweringLate(MemoryStore):
    """Takes the jobs of a claim, and answers when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.taken, self.go = asyncio.Event(), asyncio.Event()

    async def claim(self, now: Moment, **asked: Any) -> Claim:
        claim = await super().claim(now, **asked)
        self.taken.set()
        await self.go.wait()
        return claim


async def test_a_drain_that_is_cancelled_while_its_claim_is_on_the_way_gives_back_what_it_took() -> None:
    store = AnsweringLate()
    queue = Queue(store)

    @queue.handle("greet")
    async def greet(name: str) -> None: ...

    await greet.push("Ann")
    draining = asyncio.create_task(queue.drain())
    await soon(store.taken.wait())
    draining.cancel()
    await asyncio.sleep(0)
    store.go.set()
    with pytest.raises(asyncio.CancelledError):
        await soon(draining)

    (job,) = await kept(store)
    assert (job.attempts, job.held_ms) == (0, None)


async def test_a_job_that_ends_within_the_grace_is_done_and_the_stop_waits_for_it(
    store: MemoryStore, observed: Observed
) -> None:
    queue, begun, release = Queue(store, grace=20, observe=observed), asyncio.Event(), asyncio.Event()

    @queue.handle("greet")
    async def greet(name: str) -> None:
        begun.set()
        await release.wait()

    await greet.push("Ann")
    async with running(queue) as run:
        await soon(begun.wait())
        run.cancel()
        await asyncio.wait({run}, timeout=0.05)
        assert not run.done()
        assert queue.state == "stopping"
        await greet.push("Bob")
        release.set()
    assert queue.state == "stopped"
    assert observed.outcomes == ["done"]
    assert [(job.payload, job.attempts) for job in await kept(store)] == [('"Bob"', 0)], "no claim after the stop"


@pytest.mark.parametrize(
    ("wait", "text"),
    [
        (bare, "CancelledError"),
        (in_a_task_group, "CancelledError"),
        (in_an_anyio_group, "Cancelled"),
        (answering_with_an_error, "half done"),
        (answering_that_it_is_permanent, "half done"),
    ],
)
async def test_a_job_that_the_stop_cuts_is_put_back_due_now_and_free_whatever_it_raises(
    store: MemoryStore,
    observed: Observed,
    caplog: pytest.LogCaptureFixture,
    wait: Callable[[], Awaitable[None]],
    text: str,
) -> None:
    caplog.set_level(logging.INFO, "fastqueue")
    queue, begun = Queue(store, grace=AT_ONCE, observe=observed), asyncio.Event()

    @queue.handle("greet", attempts=1, timeout=30)
    async def greet(name: str) -> None:
        begun.set()
        await wait()

    await greet.push("Ann")
    async with running(queue):
        await soon(begun.wait())
    (job,) = await kept(store)
    assert job.error is not None
    assert text in job.error
    assert (job.attempts, job.failed_ms) == (0, None)
    assert observed.outcomes == ["put back"]
    assert lines(caplog)[-1] == f"a job was put back, as the queue stops: kind=greet job={job.id}"
    assert len(await taken(store, "greet", Clock().now())) == 1


async def test_a_job_that_returns_after_the_stop_s_cancel_is_done(store: MemoryStore, observed: Observed) -> None:
    queue, begun = Queue(store, grace=AT_ONCE, observe=observed), asyncio.Event()

    @queue.handle("greet")
    async def greet(name: str) -> None:
        begun.set()
        try:
            await bare()
        except asyncio.CancelledError:
            return

    await greet.push("Ann")
    async with running(queue):
        await soon(begun.wait())
    assert observed.outcomes == ["done"]
    assert await kept(store) == []


async def test_interruptions_are_free_three_times_then_counted_and_never_final(
    store: MemoryStore, observed: Observed
) -> None:
    used: list[int] = []
    for _ in range(6):
        queue, begun = Queue(store, grace=AT_ONCE, observe=observed), asyncio.Event()

        @queue.handle("greet", attempts=3)
        async def greet(name: str, begun: asyncio.Event = begun) -> None:
            begun.set()
            await bare()

        if not used:
            await greet.push("Ann")
        async with running(queue):
            await soon(begun.wait())
        (job,) = await kept(store)
        used.append(job.attempts)
    assert used == [0, 0, 0, 1, 2, 2]
    assert observed.outcomes == ["put back"] * 6

    last = Queue(store, observe=observed)

    @last.handle("greet", attempts=3)
    async def works(name: str) -> None:
        return None

    async with running(last):
        while observed.outcomes[-1] != "done":
            await observed.next()
    assert observed.all[-1].attempt == 3


async def test_a_failed_attempt_makes_interruptions_free_again(store: MemoryStore, observed: Observed) -> None:
    for round in range(5):
        queue, begun = Queue(store, grace=AT_ONCE, observe=observed), asyncio.Event()

        @queue.handle("greet", attempts=9, backoff=constant(0))
        async def greet(name: str, begun: asyncio.Event = begun, round: int = round) -> None:
            if round == 2 and observed.outcomes[-1] == "put back":
                raise ValueError
            begun.set()
            await bare()

        if not round:
            await greet.push("Ann")
        async with running(queue):
            await soon(begun.wait())
    assert observed.outcomes == ["put back"] * 2 + ["retried"] + ["put back"] * 3
    (job,) = await kept(store)
    assert job.attempts == 1


async def test_a_handler_that_swallows_every_cancel_cannot_hang_the_stop(
    store: MemoryStore, observed: Observed, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fastqueue.worker.crew, "TAIL", 0.05)
    queue = Queue(store, grace=AT_ONCE, observe=observed)
    begun, release, cancels = asyncio.Event(), asyncio.Event(), list[str]()

    @queue.handle("stubborn")
    async def stubborn(name: str) -> None:
        begun.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                cancels.append(name)

    pushed = await stubborn.push("Ann")
    async with running(queue):
        await soon(begun.wait())
    (job,) = await kept(store)
    release.set()
    assert cancels == ["Ann"]
    assert lines(caplog, logging.WARNING) == [
        f"the queue stops while jobs still run; they run again after their holds: stubborn {pushed.id}"
    ]
    assert job.state(Clock().now()) == "running", "its hold stands, so nothing runs it twice"
    assert (await observed.next()).outcome == "done"


async def test_a_grace_of_nothing_is_each_job_s_own_time_limit(store: MemoryStore, observed: Observed) -> None:
    queue, begun, release = Queue(store, grace=0, observe=observed), asyncio.Event(), asyncio.Event()

    @queue.handle("greet", timeout=60)
    async def greet(name: str) -> None:
        begun.set()
        await release.wait()

    await greet.push("Ann")
    async with running(queue) as run:
        await soon(begun.wait())
        run.cancel()
        await asyncio.wait({run}, timeout=0.05)
        assert not run.done()
        release.set()
    assert observed.outcomes == ["done"]


async def test_the_stop_does_not_cut_an_on_fail_and_waits_for_it(store: MemoryStore) -> None:
    queue, begun, release, told = Queue(store, grace=20), asyncio.Event(), asyncio.Event(), list[str]()

    @queue.handle("greet", attempts=1)
    async def greet(name: str) -> None:
        raise ValueError("no")

    @greet.on_fail
    async def gave_up(name: str, error: Exception) -> None:
        begun.set()
        await release.wait()
        told.append(f"{name}: {error}")

    await greet.push("Ann")
    async with running(queue) as run:
        await soon(begun.wait())
        run.cancel()
        await asyncio.wait({run}, timeout=0.05)
        assert not run.done()
        release.set()
    assert told == ["Ann: no"]


async def test_claimed_jobs_that_did_not_start_are_given_back_by_the_stop(observed: Observed) -> None:
    store, begun, release = Faulty(), asyncio.Event(), asyncio.Event()
    queue = Queue(store, workers=1, grace=20, observe=observed)

    @queue.handle("count")
    async def count(number: int) -> None:
        if number == 300:
            begun.set()
            await release.wait()

    await count.push_many(range(600))
    async with running(queue) as run:
        await soon(begun.wait())
        run.cancel()

        async def gave_back() -> bool:
            return bool(store.given_back)

        await until(gave_back)
        release.set()
    left = await kept(store)
    assert {job.attempts for job in left} == {0}
    assert [job.payload for job in left] == [str(number) for number in range(301, 600)]


class SlowClaims(Faulty):
    """Takes the jobs at once, and answers a claim when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.answer = asyncio.Event(), asyncio.Event()

    async def claim(
        self, now: Moment, *, token: int, limit: int, queues: Sequence[str] | None, kinds: Collection[str]
    ) -> Claim:
        claim = await super().claim(now, token=token, limit=limit, queues=queues, kinds=kinds)
        self.asked.set()
        await self.answer.wait()
        return claim


async def test_a_claim_in_flight_at_the_stop_is_awaited_and_its_jobs_are_given_back_unstarted(
    observed: Observed,
) -> None:
    store = SlowClaims()
    queue = Queue(store, grace=20, observe=observed)

    @queue.handle("greet")
    async def greet(name: str) -> None:
        pytest.fail("nothing is started once the queue stops")

    pushed = await greet.push_many(["Ann", "Bob"])
    async with running(queue) as run:
        await soon(store.asked.wait())
        run.cancel()
        await asyncio.wait({run}, timeout=0.05)
        assert not run.done()
        store.answer.set()
    assert store.given_back == [job.id for job in pushed]
    assert [(job.attempts, job.held_ms) for job in await kept(store)] == [(0, None)] * 2
    assert observed.all == []


async def test_a_claim_that_is_never_answered_cannot_hang_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastqueue.worker.crew, "SETTLE_BOUND", 0.05)
    store = SlowClaims()
    queue = Queue(store)

    @queue.handle("greet")
    async def greet(name: str) -> None:
        pytest.fail("its claim was never answered")

    await greet.push("Ann")
    async with running(queue):
        await soon(store.asked.wait())
    (job,) = await kept(store)
    assert job.state(Clock().now()) == "running", "it waits for its hold"


async def test_a_claim_that_is_not_answered_does_not_keep_what_runs_from_being_put_back(
    observed: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fastqueue.worker.crew, "SETTLE_BOUND", 3600)
    store, begun, release = SlowClaims(), asyncio.Event(), asyncio.Event()
    store.answer.set()
    queue = Queue(store, workers=2, poll=0.01, grace=AT_ONCE, observe=observed)

    @queue.handle("greet")
    async def greet(name: str) -> None:
        begun.set()
        store.answer.clear()
        store.asked.clear()
        await release.wait()

    await greet.push("Ann")
    async with running(queue) as run:
        await soon(begun.wait())
        await soon(store.asked.wait())
        run.cancel()
        assert (await observed.next()).outcome == "put back"
        assert not run.done()
        store.answer.set()


class SlowHolds(Holds):
    """Holds kinds back when it is let."""

    def __init__(self, holds: Holds) -> None:
        self.holds, self.asked, self.answer = holds, asyncio.Event(), asyncio.Event()

    async def hold_back(self, job: Claimed, *, until: Moment) -> bool:
        self.asked.set()
        await self.answer.wait()
        return await self.holds.hold_back(job, until=until)


async def test_a_job_that_its_limiter_refused_is_held_back_though_the_queue_stops_meanwhile(
    store: MemoryStore, observed: Observed
) -> None:
    class Never:
        async def ask(self, kind: str) -> float:
            return 3600

    assert store.holds is not None
    store.holds = slow = SlowHolds(store.holds)
    queue = Queue(store, grace=AT_ONCE, observe=observed)

    @queue.handle("greet", rate=Never())
    async def greet(name: str) -> None:
        pytest.fail("its limiter refuses it")

    await greet.push("Ann")
    async with running(queue) as run:
        await soon(slow.asked.wait())
        run.cancel()
        await asyncio.wait({run}, timeout=0.05)
        slow.answer.set()
    assert observed.outcomes == ["held back"]
    assert [(job.attempts, job.held_ms) for job in await kept(store)] == [(0, None)]


async def test_a_stop_that_is_asked_for_twice_still_puts_everything_back(
    store: MemoryStore, observed: Observed
) -> None:
    queue, begun = Queue(store, grace=0.1, observe=observed), asyncio.Event()

    @queue.handle("greet")
    async def greet(name: str) -> None:
        begun.set()
        await bare()

    await greet.push("Ann")
    async with running(queue) as run:
        await soon(begun.wait())
        run.cancel()
        await asyncio.sleep(0)
        await stopped(run)
    assert observed.outcomes == ["put back"]


class SlowSettling(Faulty):
    """Keeps a settlement when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.answer = asyncio.Event(), asyncio.Event()

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        self.asked.set()
        await self.answer.wait()
        return await super().settle(settlements)


async def test_a_drain_whose_caller_is_cancelled_puts_its_job_back(store: MemoryStore, observed: Observed) -> None:
    queue, begun = Queue(store, observe=observed), asyncio.Event()

    @queue.handle("greet")
    async def greet(name: str) -> None:
        begun.set()
        await bare()

    await greet.push("Ann")
    draining = asyncio.create_task(queue.drain())
    await soon(begun.wait())
    draining.cancel()
    with pytest.raises(asyncio.CancelledError):
        await draining
    assert observed.outcomes == ["put back"]
    (job,) = await kept(store)
    assert job.attempts == 0


async def test_a_drain_whose_caller_is_cancelled_twice_puts_its_job_back(observed: Observed) -> None:
    store = SlowSettling()
    queue, begun = Queue(store, observe=observed), asyncio.Event()

    @queue.handle("greet")
    async def greet(name: str) -> None:
        begun.set()
        await bare()

    await greet.push("Ann")
    draining = asyncio.create_task(queue.drain())
    await soon(begun.wait())
    draining.cancel()
    await soon(store.asked.wait())
    draining.cancel()
    await asyncio.wait({draining}, timeout=A_WHILE)
    assert not draining.done()
    store.answer.set()
    with pytest.raises(asyncio.CancelledError):
        await soon(draining)
    assert observed.outcomes == ["put back"]


async def test_a_handler_that_swallows_every_cancel_cannot_hang_a_drain(
    store: MemoryStore, observed: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fastqueue.worker.crew, "TAIL", 0.05)
    queue, begun, release = Queue(store, grace=AT_ONCE, observe=observed), asyncio.Event(), asyncio.Event()

    @queue.handle("stubborn")
    async def stubborn(name: str) -> None:
        begun.set()
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()

    await stubborn.push("Ann")
    draining = asyncio.create_task(queue.drain())
    await soon(begun.wait())
    await stopped(draining)
    assert observed.outcomes == []
    release.set()
    assert (await observed.next()).outcome == "done"


@pytest.mark.parametrize("timeout", [60, 0.001], ids=["a job that has time", "a job whose time is up about then"])
async def test_a_stop_at_whatever_moment_ends_and_leaves_no_job_held(observed: Observed, timeout: float) -> None:
    for turns in range(120):
        store = MemoryStore()
        queue = Queue(store, workers=2, grace=AT_ONCE, observe=observed)

        @queue.handle("turn", timeout=timeout)
        async def turn(number: int) -> None:
            for _ in range(number):
                await asyncio.sleep(0)
            await asyncio.sleep(0.0005 * (number % 3))

        await turn.push_many(range(8))
        run = asyncio.create_task(queue.run())
        for _ in range(turns % 60):
            await asyncio.sleep(0)
        if turns >= 60:
            await asyncio.sleep(0.001)
        await stopped(run)
        assert run.cancelled()
        assert [job.held_ms for job in await kept(store) if job.held_ms is not None] == []

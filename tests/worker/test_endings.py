"""How one run ends, and what becomes of its job: on memory, with a clock moved by hand."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from datetime import timedelta

import pytest

from fastqueue import Permanent, Queue, constant
from fastqueue.clock import as_moment
from fastqueue.errors import Mismatch, WorkerLost
from fastqueue.job import NewJob
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import FakeClock
from tests.worker.stage import Observed, kept, lines, taken

RAISED: list[Callable[[], BaseException]] = [
    lambda: ValueError("no"),
    lambda: asyncio.CancelledError("its own"),
    lambda: SystemExit(3),
    lambda: KeyboardInterrupt(),
    lambda: ExceptionGroup("two", [ValueError("a"), OSError("b")]),
    lambda: BaseExceptionGroup("worse", [SystemExit(1)]),
    lambda: TimeoutError("of an inner call"),
]
NAMES = [type(make()).__name__ for make in RAISED]


async def test_a_pushed_job_runs_once_with_its_value(store: MemoryStore, clock: FakeClock) -> None:
    queue, seen = Queue(store, clock=clock), list[str]()

    @queue.handle("greet")
    async def greet(name: str) -> None:
        seen.append(name)

    pushed = await greet.push("Ann")
    assert pushed.new
    assert await queue.drain() == 1
    clock.move(timedelta(days=1))
    assert await queue.drain() == 0
    assert seen == ["Ann"]
    assert await kept(store) == []


async def test_a_job_for_later_runs_at_its_moment_and_not_before(store: MemoryStore, clock: FakeClock) -> None:
    queue, seen = Queue(store, clock=clock), list[str]()

    @queue.handle("greet")
    async def greet(name: str) -> None:
        seen.append(name)

    await greet.push("Ann", at=clock() + timedelta(hours=1))
    await greet.push("Bob", delay=3600)
    clock.move(3599.999)
    assert await queue.drain() == 0
    clock.move(0.001)
    assert await queue.drain() == 2
    assert seen == ["Ann", "Bob"]


async def test_a_job_that_keeps_failing_runs_as_often_as_it_has_attempts_then_is_kept_as_failed(
    store: MemoryStore, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    queue, runs, begun = Queue(store, clock=clock), list[float](), clock()

    @queue.handle("greet", attempts=3, backoff=lambda attempt: attempt * 60)
    async def greet(name: str) -> None:
        runs.append((clock() - begun).total_seconds())
        raise ValueError(f"no such person: {name}")

    await greet.push("Ann")
    for step in (0, 59, 1, 119, 1, 86_400):
        clock.move(step)
        await queue.drain()

    assert runs == [0, 60, 180]
    (failed,) = await queue.failed()
    assert (failed.attempts, failed.error) == (3, "no such person: Ann")
    assert failed.failed_at == begun + timedelta(seconds=180), "the moment is the queue's own clock's"
    assert [line.partition(":")[0] for line in lines(caplog, logging.WARNING)] == [
        "a job failed, and will run again",
        "a job failed, and will run again",
        "a job failed for good",
    ]


async def test_a_job_that_fails_once_and_then_works_leaves_nothing_behind(store: MemoryStore, clock: FakeClock) -> None:
    queue, runs = Queue(store, clock=clock), list[int]()

    @queue.handle("greet")
    async def greet(name: str) -> None:
        runs.append(len(runs))
        if len(runs) == 1:
            raise ValueError

    await greet.push("Ann")
    await queue.drain()
    (waiting,) = await kept(store)
    wait = waiting.run_ms - as_moment("now", clock())
    assert 1000 <= wait <= 1100, "the default backoff"
    assert waiting.error == "ValueError"
    clock.move(3600)
    await queue.drain()
    assert len(runs) == 2
    assert await kept(store) == []


def direct() -> None:
    raise Permanent("no such mailbox")


def wrapping() -> None:
    raise Permanent(ValueError("no such mailbox"))


def as_a_cause() -> None:
    try:
        direct()
    except Permanent as error:
        raise RuntimeError("outer") from error


def as_a_context() -> None:
    try:
        wrapping()
    except Permanent:
        raise RuntimeError("outer")  # noqa: B904 - the implicit context is what is tried


def two_links_deep() -> None:
    try:
        as_a_cause()
    except RuntimeError as error:
        raise OSError("outermost") from error


@pytest.mark.parametrize("fail", [direct, wrapping, as_a_cause, as_a_context, two_links_deep])
async def test_a_permanent_error_anywhere_in_the_chain_of_causes_fails_the_job_at_once_with_the_inner_text(
    store: MemoryStore, clock: FakeClock, fail: Callable[[], None]
) -> None:
    queue, runs = Queue(store, clock=clock), list[str]()

    @queue.handle("greet")
    async def greet(name: str) -> None:
        runs.append(name)
        fail()

    await greet.push("Ann")
    await queue.drain()
    clock.move(timedelta(days=1))
    await queue.drain()
    (failed,) = await queue.failed()
    assert (runs, failed.attempts, failed.error) == (["Ann"], 1, "no such mailbox")


async def test_a_permanent_error_that_was_set_aside_does_not_count(store: MemoryStore, clock: FakeClock) -> None:
    queue = Queue(store, clock=clock)

    @queue.handle("greet")
    async def greet(name: str) -> None:
        try:
            direct()
        except Permanent:
            raise RuntimeError("try again") from None

    await greet.push("Ann")
    await queue.drain()
    assert await queue.failed() == []


@pytest.mark.parametrize("make", RAISED, ids=NAMES)
@pytest.mark.parametrize("in_thread", [False, True], ids=["async def", "def"])
async def test_whatever_a_handler_raises_is_an_ordinary_failed_attempt(
    store: MemoryStore, clock: FakeClock, observed: Observed, make: Callable[[], BaseException], in_thread: bool
) -> None:
    queue = Queue(store, clock=clock, observe=observed)

    async def on_the_loop(name: str) -> None:
        raise make()

    def in_a_thread(name: str) -> None:
        raise make()

    if in_thread:
        greet = queue.handle("greet", in_a_thread, attempts=2, backoff=constant(0))
    else:
        greet = queue.handle("greet", on_the_loop, attempts=2, backoff=constant(0))
    await greet.push("Ann")
    assert await queue.drain() == 2, "one that is due again at once runs again in the same drain"
    assert observed.outcomes == ["retried", "failed"]
    assert [type(ran.error) for ran in observed.all] == [type(make())] * 2
    (failed,) = await queue.failed()
    assert failed.attempts == 2
    assert failed.error


async def test_a_handler_that_cancels_itself_has_failed(
    store: MemoryStore, clock: FakeClock, observed: Observed
) -> None:
    queue = Queue(store, clock=clock, observe=observed)

    @queue.handle("greet")
    async def greet(name: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    await greet.push("Ann")
    await queue.drain()
    assert observed.outcomes == ["retried"]
    assert isinstance(observed.all[0].error, asyncio.CancelledError)


async def test_a_handler_that_returns_with_a_cancel_of_itself_pending_is_done(
    store: MemoryStore, clock: FakeClock, observed: Observed
) -> None:
    queue = Queue(store, clock=clock, observe=observed)

    @queue.handle("greet")
    async def greet(name: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    await greet.push("Ann")
    await queue.drain()
    assert observed.outcomes == ["done"]
    assert await kept(store) == []


async def test_a_value_that_does_not_fit_its_handler_any_more_fails_at_once_and_is_kept(
    store: MemoryStore, clock: FakeClock, observed: Observed, caplog: pytest.LogCaptureFixture
) -> None:
    queue, called = Queue(store, clock=clock, observe=observed), list[object]()

    @queue.handle("greet")
    async def greet(value: dict[str, str]) -> None:
        called.append(value)

    @greet.on_fail
    async def gave_up(value: dict[str, str], error: Exception) -> None:
        called.append(error)

    now = as_moment("now", clock())
    await store.push([NewJob(kind="greet", payload=json.dumps({"name": 42}), run_at=now)], now=now)
    await queue.drain()
    (failed,) = await queue.failed()
    assert called == []
    assert (failed.attempts, failed.payload) == (1, '{"name": 42}')
    assert "does not fit" in (failed.error or "")
    assert isinstance(observed.all[0].error, Mismatch)
    assert any("on_fail was not called" in line for line in lines(caplog, logging.ERROR))


async def test_a_broken_backoff_costs_a_minute_and_says_so(
    store: MemoryStore, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    queue = Queue(store, clock=clock)

    @queue.handle("greet", backoff=lambda attempt: 1 / (attempt - 1))
    async def greet(name: str) -> None:
        raise ValueError

    await greet.push("Ann")
    await queue.drain()
    (waiting,) = await kept(store)
    assert waiting.run_at == clock() + timedelta(minutes=1)
    assert any("a backoff failed" in line for line in lines(caplog, logging.ERROR))


async def test_a_job_whose_worker_died_in_its_last_attempt_fails_for_good_without_another_run(
    store: MemoryStore, clock: FakeClock, observed: Observed
) -> None:
    queue, told = Queue(store, clock=clock, observe=observed), list[BaseException]()

    @queue.handle("greet", attempts=1)
    async def greet(name: str) -> None:
        pytest.fail("it has no attempt left")

    @greet.on_fail
    async def gave_up(name: str, error: Exception) -> None:
        told.append(error)

    await greet.push("Ann")
    assert len(await taken(store, "greet", as_moment("now", clock()))) == 1
    assert await queue.drain() == 0, "the claim holds it"
    clock.move(3600)
    await queue.drain()
    (failed,) = await queue.failed()
    assert failed.attempts == 1
    assert failed.error == "its worker was lost in attempt 1 of 1"
    assert [type(error) for error in told] == [WorkerLost]
    assert [(ran.attempt, ran.outcome.value) for ran in observed.all] == [(1, "failed")]


async def test_a_job_whose_worker_died_earlier_runs_again_as_its_next_attempt(
    store: MemoryStore, clock: FakeClock, observed: Observed
) -> None:
    queue = Queue(store, clock=clock, observe=observed)

    @queue.handle("greet", attempts=2)
    async def greet(name: str) -> None:
        return None

    await greet.push("Ann")
    await taken(store, "greet", as_moment("now", clock()))
    clock.move(3600)
    await queue.drain()
    assert [(ran.attempt, ran.outcome.value) for ran in observed.all] == [(2, "done")]


async def test_a_failed_job_that_is_run_again_begins_with_its_first_attempt(
    store: MemoryStore, clock: FakeClock, observed: Observed
) -> None:
    queue, mended = Queue(store, clock=clock, observe=observed), list[bool]()

    @queue.handle("greet", attempts=1)
    async def greet(name: str) -> None:
        if not mended:
            raise ValueError

    await greet.push("Ann")
    await queue.drain()
    (failed,) = await queue.failed()
    mended.append(True)
    assert await queue.run_again(failed.id)
    assert not await queue.run_again(failed.id)
    await queue.drain()
    assert [(ran.attempt, ran.outcome.value) for ran in observed.all] == [(1, "failed"), (1, "done")]
    assert not await queue.forget(failed.id)

"""Time limits of runs: what is cut, what cannot be, and what a handler may know of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from fastqueue import Queue, Run, constant
from fastqueue.errors import OutOfTime
from fastqueue.stores.memory import MemoryStore
from tests.worker.stage import Observed, kept, running

LIMIT = 0.02


async def bare() -> None:
    await asyncio.Event().wait()


async def in_a_task_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(bare())


async def in_an_anyio_group() -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(bare)


@pytest.mark.parametrize("wait", [bare, in_a_task_group, in_an_anyio_group])
async def test_a_run_that_takes_too_long_is_cut_and_is_a_failed_attempt(
    store: MemoryStore, observed: Observed, wait: Callable[[], Awaitable[None]]
) -> None:
    queue = Queue(store, observe=observed)

    @queue.handle("greet", timeout=LIMIT, attempts=2, backoff=constant(0))
    async def greet(name: str) -> None:
        await wait()

    await greet.push("Ann")
    async with running(queue):
        first, last = await observed.next(), await observed.next()
    assert (first.outcome, last.outcome) == ("retried", "failed")
    assert isinstance(first.error, OutOfTime)
    (failed,) = await queue.failed()
    assert failed.error == "ran out of time: its limit is 0.02 s"


async def test_a_handler_that_answers_the_limit_with_an_error_of_its_own_failed_with_that(
    store: MemoryStore, observed: Observed
) -> None:
    queue = Queue(store, observe=observed)

    @queue.handle("greet", timeout=LIMIT)
    async def greet(name: str) -> None:
        try:
            await bare()
        except asyncio.CancelledError:
            raise ValueError("half done") from None

    await greet.push("Ann")
    async with running(queue):
        ran = await observed.next()
    assert (ran.outcome, str(ran.error)) == ("retried", "half done")


async def test_a_handler_that_returns_after_its_limit_is_done(store: MemoryStore, observed: Observed) -> None:
    queue = Queue(store, observe=observed)

    @queue.handle("greet", timeout=LIMIT)
    async def greet(name: str) -> None:
        try:
            await bare()
        except asyncio.CancelledError:
            return

    await greet.push("Ann")
    async with running(queue):
        ran = await observed.next()
    assert (ran.outcome, ran.error) == ("done", None)
    assert await kept(store) == []


async def test_a_handler_s_own_inner_timeout_is_its_own_error(store: MemoryStore, observed: Observed) -> None:
    queue = Queue(store, observe=observed)

    @queue.handle("greet", timeout=30)
    async def greet(name: str) -> None:
        async with asyncio.timeout(0.001):
            await bare()

    await greet.push("Ann")
    async with running(queue):
        ran = await observed.next()
    assert ran.outcome == "retried"
    assert type(ran.error) is TimeoutError


@pytest.mark.parametrize("fails", [False, True])
async def test_a_plain_function_is_told_to_stop_and_ends_as_it_ends(
    store: MemoryStore, observed: Observed, fails: bool
) -> None:
    queue = Queue(store, observe=observed)

    @queue.handle("greet", timeout=LIMIT)
    def greet(name: str, run: Run) -> None:
        until = time.monotonic() + 20
        while not run.should_stop() and time.monotonic() < until:
            time.sleep(0.001)
        assert run.should_stop()
        if fails:
            raise ValueError("stopped half way")

    await greet.push("Ann")
    async with running(queue):
        ran = await observed.next()
    assert (ran.outcome, str(ran.error)) == (("retried", "stopped half way") if fails else ("done", "None"))


@pytest.mark.parametrize(("timeout", "limited"), [(30, True), (None, False)])
async def test_a_handler_sees_its_deadline(
    store: MemoryStore, observed: Observed, timeout: float | None, limited: bool
) -> None:
    queue, runs = Queue(store, observe=observed), list[tuple[Run, datetime]]()

    @queue.handle("greet", timeout=timeout, attempts=3)
    async def greet(name: str, run: Run) -> None:
        runs.append((run, datetime.now(UTC)))

    await greet.push("Ann")
    async with running(queue):
        await observed.next()
    ((run, now),) = runs
    assert (run.deadline is not None) == limited
    if run.deadline is not None:
        assert timedelta(seconds=29) < run.deadline - now <= timedelta(seconds=30)
    assert (run.kind, run.queue, run.attempt, run.attempts_left) == ("greet", "default", 1, 2)


async def test_one_late_run_does_not_cut_another(store: MemoryStore, observed: Observed) -> None:
    queue, release = Queue(store, observe=observed), asyncio.Event()

    @queue.handle("short", timeout=LIMIT)
    async def short(name: str) -> None:
        await bare()

    @queue.handle("long", timeout=30)
    async def long(name: str) -> None:
        await release.wait()

    await long.push("Ann")
    await short.push("Bob")
    async with running(queue):
        first = await observed.next()
        release.set()
        second = await observed.next()
    assert (first.kind, first.outcome) == ("short", "retried")
    assert (second.kind, second.outcome) == ("long", "done")

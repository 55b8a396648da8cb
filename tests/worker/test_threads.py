"""Plain functions as handlers: each runs in a thread of its own, with what its job carried."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from contextvars import ContextVar

import pytest

import fastqueue.worker.crew
from fastqueue import CarryVar, Queue
from fastqueue.errors import WrongPlace
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import FakeClock
from fastqueue.worker.call import HandlerThread
from tests.worker.stage import SOON, Observed, kept, running, soon

tenant: ContextVar[str] = ContextVar("tenant", default="none")


async def test_a_plain_handler_runs_in_a_thread_of_its_own_with_the_carried_context(
    store: MemoryStore, clock: FakeClock
) -> None:
    queue, seen = Queue(store, clock=clock, carry=[CarryVar(tenant)]), list[tuple[threading.Thread, str]]()

    @queue.handle("greet")
    def greet(name: str) -> None:
        seen.append((threading.current_thread(), tenant.get()))

    before = tenant.set("acme")
    await greet.push("Ann")
    tenant.reset(before)
    await queue.drain()
    ((thread, carried),) = seen
    assert thread is not threading.main_thread()
    assert isinstance(thread, HandlerThread)
    assert thread.daemon, "one that never returns must not keep the process"
    assert carried == "acme"


async def test_plain_handlers_do_not_block_the_loop_nor_each_other(store: MemoryStore, observed: Observed) -> None:
    queue, together = Queue(store, workers=3, observe=observed), threading.Barrier(3)

    @queue.handle("greet")
    def greet(name: str) -> None:
        together.wait(SOON)

    await greet.push_many(["Ann", "Bob", "Cid"])
    async with running(queue):
        for _ in range(3):
            assert (await observed.next()).outcome == "done"


async def test_what_a_plain_handler_returns_to_be_awaited_is_awaited(
    store: MemoryStore, clock: FakeClock, observed: Observed
) -> None:
    queue, seen = Queue(store, clock=clock, observe=observed), list[str]()

    async def later(name: str) -> None:
        await asyncio.sleep(0)
        seen.append(name)

    @queue.handle("greet")
    def greet(name: str) -> Awaitable[None]:
        return later(name)

    await greet.push("Ann")
    await queue.drain()
    assert (seen, observed.outcomes) == (["Ann"], ["done"])


async def test_a_stop_iteration_in_a_plain_handler_is_a_failed_attempt(
    store: MemoryStore, clock: FakeClock, observed: Observed
) -> None:
    queue = Queue(store, clock=clock, observe=observed)

    @queue.handle("greet")
    def greet(name: str) -> None:
        next(iter(()))

    await greet.push("Ann")
    await queue.drain()
    assert observed.outcomes == ["retried"]
    assert "StopIteration" in str(observed.all[0].error)


async def test_a_plain_handler_pushes_with_push_sync_and_is_told_so(
    store: MemoryStore, clock: FakeClock, observed: Observed
) -> None:
    queue, refused = Queue(store, clock=clock, observe=observed), list[str]()
    follow = queue.kind("follow", str)

    @queue.handle("greet")
    def greet(name: str) -> None:
        try:
            follow.push(name).close()
        except WrongPlace as error:
            refused.append(str(error))
        assert follow.push_sync(name).new

    await greet.push("Ann")
    await queue.drain()
    assert observed.outcomes == ["done"]
    assert refused == ["push of 'follow' in a plain function, where nobody awaits it: write push_sync(...)"]
    assert [(job.kind, job.payload) for job in await kept(store)] == [("follow", '"Ann"')]


async def test_a_plain_handler_that_goes_on_after_the_stop_keeps_its_hold(
    store: MemoryStore, observed: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fastqueue.worker.crew, "TAIL", 0.05)
    queue, release, begun = Queue(store, grace=0.001, observe=observed), threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    @queue.handle("greet")
    def greet(name: str) -> None:
        loop.call_soon_threadsafe(begun.set)
        release.wait(SOON)

    await greet.push("Ann")
    async with running(queue):
        await soon(begun.wait())
    assert observed.all == []
    (job,) = await kept(store)
    assert job.held_ms is not None
    release.set()
    assert (await observed.next()).outcome == "done"

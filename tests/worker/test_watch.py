"""The watch over holds and over the event loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

import pytest

import fastqueue.worker.watch
from fastqueue import Defaults, Queue
from fastqueue.clock import as_moment
from fastqueue.errors import StoreUnavailable
from fastqueue.job import Claimed, Moment
from fastqueue.store import StoreTime
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import FakeClock
from tests.worker.stage import Observed, kept, lines, running, soon, taken, until

SHORT = Defaults(margin=0.3, hold_at_most=0.3)
"""Holds of 600 ms, which are looked at every tenth of a second."""


class Renewing(MemoryStore):
    """Fails to renew as often as it is told."""

    failures = 1

    async def renew(self, jobs: Sequence[Claimed], *, now: Moment, until: Moment) -> list[bool]:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("no route to it")
        return await super().renew(jobs, now=now, until=until)


async def test_a_long_run_keeps_its_hold(store: MemoryStore, clock: FakeClock, observed: Observed) -> None:
    queue, begun, release = (
        Queue(store, clock=clock, observe=observed, defaults=SHORT),
        asyncio.Event(),
        asyncio.Event(),
    )

    @queue.handle("greet", timeout=None)
    async def greet(name: str) -> None:
        begun.set()
        await release.wait()

    await greet.push("Ann")
    async with running(queue):
        await soon(begun.wait())
        for _ in range(3):
            clock.move(0.5)
            now = as_moment("now", clock())

            async def renewed(now: int = now) -> bool:
                (job,) = await kept(store)
                return job.held_ms == now + 600

            await until(renewed)
            assert await taken(store, "greet", now) == []
        release.set()
        assert (await observed.next()).outcome == "done"


async def test_a_renewal_that_fails_is_logged_and_tried_again(
    clock: FakeClock, observed: Observed, caplog: pytest.LogCaptureFixture
) -> None:
    store = Renewing()
    queue, begun, release = (
        Queue(store, clock=clock, observe=observed, defaults=SHORT),
        asyncio.Event(),
        asyncio.Event(),
    )

    @queue.handle("greet", timeout=None)
    async def greet(name: str) -> None:
        begun.set()
        await release.wait()

    await greet.push("Ann")
    async with running(queue):
        await soon(begun.wait())
        clock.move(0.5)
        now = as_moment("now", clock())

        async def renewed() -> bool:
            (job,) = await kept(store)
            return job.held_ms == now + 600

        await until(renewed)
        release.set()
        assert (await observed.next()).outcome == "done"
    assert lines(caplog) == ["holds could not be renewed, trying again: jobs=1 error='no route to it'"]


class OnAServer(MemoryStore):
    """A store with a clock of its own, which tells of each renewal."""

    def __init__(self) -> None:
        super().__init__()
        self.renewed = asyncio.Event()
        self.time = ClockOfAServer()

    async def renew(self, jobs: Sequence[Claimed], *, now: Moment, until: Moment) -> list[bool]:
        self.renewed.set()
        return await super().renew(jobs, now=now, until=until)


class ClockOfAServer(StoreTime):
    def __init__(self) -> None:
        self._read = time.time_ns

    async def now(self) -> Moment:
        return self._read() // 1_000_000


@pytest.mark.parametrize("seconds", [3600, -3600])
async def test_a_run_goes_on_when_the_machine_s_clock_is_set_where_the_store_has_one(
    seconds: int, observed: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, begun, release = OnAServer(), asyncio.Event(), asyncio.Event()
    queue = Queue(store, observe=observed, defaults=SHORT)

    @queue.handle("greet", timeout=None)
    async def greet(name: str) -> None:
        begun.set()
        await release.wait()

    await greet.push("Ann")
    async with running(queue):
        await soon(begun.wait())
        read = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: read() + seconds * 10**9)
        store.renewed.clear()
        await soon(store.renewed.wait())
        release.set()
        assert (await observed.next()).outcome == "done"


async def test_a_run_that_has_lost_its_hold_is_told_to_stop_and_its_end_changes_nothing(
    store: MemoryStore, clock: FakeClock, observed: Observed, caplog: pytest.LogCaptureFixture
) -> None:
    queue, begun = Queue(store, clock=clock, observe=observed, defaults=SHORT), asyncio.Event()

    @queue.handle("greet", timeout=None)
    async def greet(name: str) -> None:
        begun.set()
        await asyncio.Event().wait()

    await greet.push("Ann")
    async with running(queue):
        await soon(begun.wait())
        clock.move(60)
        (theirs,) = await taken(store, "greet", as_moment("now", clock()))
        assert (await observed.next()).outcome == "lost"
    (job,) = await kept(store)
    assert (theirs.attempts, theirs.lost, job.attempts, job.error) == (2, True, 2, None)
    assert [line.partition(":")[0] for line in lines(caplog, logging.WARNING)] == [
        "a running job has lost its hold, and is told to stop",
        "a job failed, and will run again",
        "a run ended after its hold",
    ]


async def test_a_handler_that_blocks_the_event_loop_is_named(
    store: MemoryStore, observed: Observed, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fastqueue.worker.watch, "BLOCKED", 0.05)
    queue, noticed = Queue(store, observe=observed, defaults=SHORT), asyncio.Event()

    @queue.handle("greet")
    async def greet(name: str) -> None:
        time.sleep(0.3)  # noqa: ASYNC251 - the fault that is tried
        await noticed.wait()

    await greet.push("Ann")
    async with running(queue):

        async def said() -> bool:
            return any("the event loop was blocked" in line and "kinds=greet" in line for line in lines(caplog))

        await until(said)
        noticed.set()
        await observed.next()

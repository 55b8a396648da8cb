"""Pushing: what a push may set, from where it may be called, and what becomes of pushes at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import anyio
import pytest

from fastqueue import Queue, Run, constant, exponential, quartic
from fastqueue.errors import OptionError, StoreUnavailable, ValueRefused, WrongPlace
from fastqueue.job import Moment, NewJob, Pushed
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import FakeClock

SOON = 20.0


def a_minute(attempt: int) -> float:
    """A backoff that is a function of the app's."""
    return 60


class Gated(MemoryStore):
    """Says how many jobs each push brought, lets them through when its gate is open, and refuses some."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []
        self.begun: asyncio.Queue[None] = asyncio.Queue()
        self.gate = asyncio.Semaphore(0)
        self.down = False

    async def push(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        self.sizes.append(len(jobs))
        self.begun.put_nowait(None)
        await self.gate.acquire()
        if self.down:
            raise StoreUnavailable("no route to it")
        if any("bad" in job.payload for job in jobs):
            raise ValueRefused("this one cannot be kept")
        return await super().push(jobs, now=now)


class Crowd:
    """Callers who push while the first push is still on its way."""

    def __init__(self) -> None:
        self.store = Gated()
        self.kind = Queue(self.store).kind("greet", str)

    async def pushing(self, *names: str) -> list[asyncio.Task[Pushed]]:
        first = asyncio.create_task(self.kind.push("first"))
        await asyncio.wait_for(self.store.begun.get(), SOON)
        rest = [asyncio.create_task(self.kind.push(name)) for name in names]
        for _ in range(3):
            await asyncio.sleep(0)
        return [first, *rest]

    def open(self) -> None:
        for _ in range(99):
            self.store.gate.release()

    async def payloads(self) -> list[str]:
        return [job.payload.strip('"') for job in await self.store.jobs(now=0)]


async def test_pushes_at_the_same_time_go_together_and_each_caller_gets_its_own_id() -> None:
    crowd = Crowd()
    tasks = await crowd.pushing("Ann", "Bob", "Cid")
    crowd.open()
    ids = [pushed.id for pushed in await asyncio.gather(*tasks)]
    assert crowd.store.sizes == [1, 3]
    stored = {job.id: job.payload.strip('"') for job in await crowd.store.jobs(now=0)}
    assert [stored[id] for id in ids] == ["first", "Ann", "Bob", "Cid"]


async def test_a_job_that_cannot_be_kept_fails_its_own_caller_and_no_other() -> None:
    crowd = Crowd()
    tasks = await crowd.pushing("Ann", "bad", "Cid", "Dan")
    crowd.open()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [Pushed, Pushed, ValueRefused, Pushed, Pushed]
    assert sorted(await crowd.payloads()) == ["Ann", "Cid", "Dan", "first"]


async def test_when_the_store_is_down_every_caller_is_told_and_the_next_push_is_tried() -> None:
    crowd = Crowd()
    crowd.store.down = True
    tasks = await crowd.pushing("Ann", "Bob")
    crowd.open()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(answer) for answer in answers] == ["no route to it"] * 3
    crowd.store.down = False
    assert (await crowd.kind.push("Cid")).new
    assert await crowd.payloads() == ["Cid"]


async def test_a_waiting_push_whose_caller_gives_up_is_not_made() -> None:
    crowd = Crowd()
    tasks = await crowd.pushing("Ann", "Bob")
    tasks[1].cancel()
    crowd.open()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [Pushed, asyncio.CancelledError, Pushed]
    assert await crowd.payloads() == ["first", "Bob"]


async def test_a_caller_who_gives_up_on_its_own_statement_leaves_those_who_wait_unharmed() -> None:
    crowd = Crowd()
    tasks = await crowd.pushing("Ann", "Bob")
    tasks[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
    crowd.open()
    await asyncio.gather(*tasks[1:])
    assert await crowd.payloads() == ["Ann", "Bob"]


async def test_a_caller_who_gives_up_while_its_job_goes_in_with_others_takes_nobody_along() -> None:
    crowd = Crowd()
    tasks = await crowd.pushing("Ann", "Bob")
    crowd.store.gate.release()
    await tasks[0]
    await asyncio.wait_for(crowd.store.begun.get(), SOON)
    tasks[1].cancel()
    crowd.open()
    answers = await asyncio.gather(*tasks[1:], return_exceptions=True)
    assert [type(answer) for answer in answers] == [asyncio.CancelledError, Pushed]
    assert crowd.store.sizes == [1, 2]
    assert "Bob" in await crowd.payloads()


async def test_push_many_answers_in_its_order_and_may_be_empty() -> None:
    kind = Queue("memory://").kind("greet", str)
    first, second = await kind.push_many(["Ann", "Bob"])
    assert second.id > first.id
    assert await kind.push_many([]) == []


def push_one(kind: Any) -> Pushed:
    pushed: Pushed = kind.push_sync("Ann")
    return pushed


async def test_push_sync_works_in_a_thread_that_asyncio_started() -> None:
    queue = Queue("memory://")
    kind = queue.kind("greet", str)
    async with queue:
        assert (await asyncio.to_thread(push_one, kind)).new
        assert len(await asyncio.to_thread(kind.push_many_sync, ["Bob", "Cid"])) == 2
    assert len(await queue.store.jobs(now=0)) == 3


async def test_push_sync_works_in_a_thread_of_a_plain_route_and_push_is_refused_there() -> None:
    queue = Queue("memory://")
    kind = queue.kind("greet", str)
    assert (await anyio.to_thread.run_sync(push_one, kind)).new
    with pytest.raises(WrongPlace, match=r"push of 'greet' in a plain function.*push_sync"):
        await anyio.to_thread.run_sync(lambda: kind.push("Ann").close())
    assert len(await queue.store.jobs(now=0)) == 1


async def test_push_sync_on_the_event_loop_is_refused() -> None:
    kind = Queue("memory://").kind("greet", str)
    with pytest.raises(WrongPlace, match=r"push_sync of 'greet' would block the event loop: write await push"):
        kind.push_sync("Ann")


def test_a_script_without_a_loop_pushes_with_push_sync_or_runs_a_push_itself() -> None:
    queue = Queue("memory://")
    kind = queue.kind("greet", str)
    assert push_one(kind).new
    assert push_one(kind).new
    assert asyncio.run(kind.push("Bob")).new
    assert len(asyncio.run(queue.store.jobs(now=0))) == 3


@pytest.mark.parametrize("backoff", [constant(30), exponential(30, 60)])
async def test_what_a_push_sets_goes_before_its_kind_s(backoff: Callable[[int], float]) -> None:
    clock, runs = FakeClock(), list[tuple[int, int]]()
    queue = Queue("memory://", clock=clock)

    @queue.handle("greet", attempts=9, backoff=quartic(), queue="mail")
    async def greet(name: str, run: Run) -> None:
        runs.append((run.attempt, run.attempts_left))
        raise ValueError

    await greet.push("Ann", attempts=2, backoff=backoff, queue="urgent")
    (waiting,) = await queue.store.jobs(now=0)
    assert waiting.queue == "urgent"
    await queue.drain()
    clock.move(29.999)
    await queue.drain()
    assert runs == [(1, 1)]
    clock.move(0.001)
    await queue.drain()
    assert runs == [(1, 1), (2, 0)]
    assert [job.attempts for job in await queue.failed()] == [2]


async def test_retries_are_runs_after_the_first() -> None:
    queue, runs = Queue("memory://"), list[int]()

    @queue.handle("greet", retries=5, backoff=constant(0))
    async def greet(name: str, run: Run) -> None:
        runs.append(run.attempt)
        raise ValueError

    await greet.push("Ann", retries=0)
    await queue.drain()
    assert runs == [1]
    await greet.push("Bob")
    await queue.drain()
    assert runs == [1, 1, 2, 3, 4, 5, 6]


async def test_a_time_limit_of_the_push_is_the_job_s_hold_too() -> None:
    queue, deadlines = Queue("memory://"), list[datetime | None]()

    @queue.handle("greet", timeout=None)
    async def greet(name: str, run: Run) -> None:
        deadlines.append(run.deadline)

    await greet.push("Ann", timeout=5)
    await greet.push("Bob")
    now = queue.clock.now()
    claim = await queue.store.claim(now, token=1, limit=2, queues=None, kinds={"greet"})
    assert [job.held_until - now for job in claim.jobs] == [65_000, 360_000]
    await queue.store.give_back(claim.jobs)
    await queue.drain()
    limited, unlimited = deadlines
    assert limited is not None
    assert unlimited is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backoff": a_minute}, "a push keeps its backoff with the job"),
        ({"attempts": 0}, r"push of 'greet': attempts=0; it takes a whole number of at least 1"),
        ({"retries": -1}, r"push of 'greet': retries=-1"),
        ({"attempts": 2, "retries": 1}, r"push of 'greet': attempts=2 and retries=1; give one"),
        ({"timeout": 0}, r"push of 'greet': timeout=0"),
        ({"delay": -1}, r"push of 'greet': delay=-1"),
        ({"delay": 1, "at": datetime(2026, 9, 1)}, "give one"),
        ({"at": datetime(2026, 9, 1)}, "has no time zone"),
        ({"queue": ""}, "queue"),
    ],
)
async def test_an_option_that_cannot_be_is_refused_and_nothing_is_pushed(options: dict[str, Any], message: str) -> None:
    queue = Queue("memory://")
    kind = queue.kind("greet", str)
    with pytest.raises(OptionError, match=message):
        await kind.push("Ann", **options)
    assert await queue.store.jobs(now=0) == []


async def test_a_value_that_would_not_come_back_is_refused_and_push_many_keeps_none_of_its_jobs() -> None:
    queue = Queue("memory://")
    kind = queue.kind("measure", float)
    with pytest.raises(ValueRefused, match="'measure'"):
        await kind.push_many([1.0, float("nan")])
    assert await queue.store.jobs(now=0) == []


async def test_a_past_moment_means_at_once_and_keeps_its_place() -> None:
    clock, seen = FakeClock(), list[str]()
    queue = Queue("memory://", clock=clock)

    @queue.handle("greet")
    async def greet(name: str) -> None:
        seen.append(name)

    await greet.push("now")
    await greet.push("yesterday", at=clock() - timedelta(days=1))
    await queue.drain()
    assert seen == ["yesterday", "now"]

"""Limits on their way through a queue: unique, latest, one at a time, at once, rate."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from fastqueue import Kind, Outcome, Permanent, Pushed, Queue, Ran, Throttle, Unique, constant, every
from fastqueue.clock import as_moment
from fastqueue.errors import OptionError, Unsupported, ValueRefused
from fastqueue.job import StoredJob
from fastqueue.outcome import Settlement
from fastqueue.store import Keep
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import FakeClock

AN_HOUR = 3600.0


class App:
    """A queue with the kind "greet", whose handler notes its values and can be kept from ending."""

    def __init__(self, store: MemoryStore | None = None, clock: FakeClock | None = None, **options: Any) -> None:
        self.clock = clock or FakeClock()
        self.store = store or MemoryStore()
        self.ran: list[Ran] = []
        self.queue = Queue(self.store, clock=self.clock, poll=AN_HOUR, observe=self.ran.append)
        self.seen: list[str] = []
        self.started: asyncio.Queue[str] = asyncio.Queue()
        self.gates: dict[str, asyncio.Event] = {}

        @self.queue.handle("greet", **options)
        async def greet(name: str) -> None:
            await self.work(name)

        self.greet: Kind[str] = greet

    async def work(self, name: str) -> None:
        """Note that a job began, and go on once its gate is open, if it has one."""
        self.seen.append(name)
        self.started.put_nowait(name)
        if gate := self.gates.get(name):
            await gate.wait()

    def block(self, *names: str) -> None:
        """Have the jobs of these values wait for `release`."""
        self.gates |= {name: asyncio.Event() for name in names}

    def release(self, name: str) -> None:
        self.gates.pop(name).set()

    async def next_start(self) -> str:
        return await asyncio.wait_for(self.started.get(), 5)

    async def jobs(self) -> list[StoredJob]:
        return await self.store.jobs(now=0)

    async def drain(self, *, after: float | timedelta = 0) -> int:
        self.clock.move(after)
        return await self.queue.drain()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Run the queue around the block; what still runs at its end is let go."""
        task = asyncio.create_task(self.queue.run())
        try:
            yield
        finally:
            for name in list(self.gates):
                self.release(name)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def settled(self) -> None:
        """Let the worker look, until it has nothing more to begin: everything in memory answers within some turns."""
        self.queue.wake()
        for _ in range(100):
            await asyncio.sleep(0)


class Says:
    """A limiter that gives these answers one after the other, then 0; an error is raised."""

    def __init__(self, *answers: float | timedelta | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def ask(self, kind: str, /) -> float | timedelta:
        self.asked.append(kind)
        answer = self.answers.pop(0) if self.answers else 0
        if isinstance(answer, Exception):
            raise answer
        return answer


class TakesItsTime(MemoryStore):
    """A store that answers a settlement after the worker has looked for work again, as a database does."""

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        for _ in range(50):
            await asyncio.sleep(0)
        return await super().settle(settlements)


def keeping(*lacks: Keep) -> MemoryStore:
    """A store that keeps everything but this."""

    class Lacking(MemoryStore):
        keeps = frozenset(Keep) - set(lacks)

    return Lacking()


# -- unique --------------------------------------------------------------------------------------------------------


async def test_of_a_unique_job_s_pushes_the_waiting_one_stays_where_it_is() -> None:
    app = App(unique=True)
    first = await app.greet.push("Ann", delay=60)
    assert await app.greet.push("Ann") == Pushed(first.id, False)
    assert (await app.greet.push("Bob")).new
    assert not (await app.greet.push("Bob")).new
    await app.drain()
    assert app.seen == ["Bob"]
    await app.drain(after=60)
    assert app.seen == ["Bob", "Ann"]


async def test_a_handler_can_push_its_own_value() -> None:
    app = App()
    left = [True]

    @app.queue.handle("again", unique=True)
    async def again(name: str) -> None:
        if left:
            left.pop()
            await again.push(name)

    await again.push("Ann")
    assert await app.drain() == 2


async def test_latest_moves_the_waiting_job_to_the_last_push_earlier_or_later() -> None:
    app = App(unique=Unique(latest=True))
    await app.greet.push("Ann", delay=60)
    app.clock.move(120)
    await app.greet.push("Ann", delay=60)
    assert await app.drain() == 0
    assert await app.drain(after=60) == 1

    await app.greet.push("Ann", delay=60)
    await app.greet.push("Ann")
    assert await app.drain() == 1
    assert await app.jobs() == []


async def test_one_at_a_time_keeps_two_of_a_value_apart_and_nobody_else() -> None:
    app = App(TakesItsTime(), unique=Unique(one_at_a_time=True))
    app.block("Ann")
    async with app.running():
        await app.greet.push("Ann")
        assert await app.next_start() == "Ann"
        await app.greet.push("Ann")
        await app.greet.push("Bob")
        assert await app.next_start() == "Bob"
        await app.settled()
        assert app.seen == ["Ann", "Bob"]
        app.release("Ann")
        assert await app.next_start() == "Ann"


class Mail(BaseModel):
    user: int
    text: str = ""


@pytest.mark.parametrize("by", ["user", ["user"], lambda mail: mail.user])  # pyright: ignore[reportUnknownLambdaType]
async def test_a_part_of_the_value_can_make_two_jobs_the_same(by: str | list[str] | Callable[[Mail], int]) -> None:
    queue = Queue(MemoryStore(), clock=FakeClock())
    sent: list[str] = []

    @queue.handle("mail", unique=Unique(by=by))
    async def send(mail: Mail) -> None:
        sent.append(f"{mail.user}{mail.text}")

    answers = await send.push_many([Mail(user=1, text="a"), Mail(user=1, text="b"), Mail(user=2, text="a")])
    assert [answer.new for answer in answers] == [True, False, True]
    await queue.drain()
    assert sent == ["1a", "2a"]


async def test_a_part_that_cannot_be_made_a_key_refuses_the_push_and_keeps_nothing() -> None:
    store = MemoryStore()
    queue = Queue(store)

    @queue.handle("mail", unique=Unique(by=lambda mail: object()))
    async def send(mail: Mail) -> None: ...

    with pytest.raises(ValueRefused):
        await send.push(Mail(user=1))
    assert await store.jobs(now=0) == []


# -- where the keys are --------------------------------------------------------------------------------------------


async def test_a_running_job_s_unique_key_is_free() -> None:
    app = App(unique=True)
    app.block("Ann")
    async with app.running():
        await app.greet.push("Ann")
        await app.next_start()
        assert [job.unique_key for job in await app.jobs()] == [None]
        assert (await app.greet.push("Ann")).new
        assert await app.next_start() == "Ann"


@pytest.mark.parametrize("error", [RuntimeError("later"), Permanent("never")])
async def test_a_failed_run_leaves_the_unique_key_free_and_keeps_the_one_it_runs_alone_by(error: Exception) -> None:
    queue = Queue(store := MemoryStore(), clock=FakeClock())

    @queue.handle("fail", unique=Unique(one_at_a_time=True), backoff=constant(60))
    async def fail(name: str) -> None:
        raise error

    await fail.push("Ann")
    (pushed,) = await store.jobs(now=0)
    assert pushed.unique_key == pushed.alone_key is not None
    await queue.drain()
    (after,) = await store.jobs(now=0)
    assert (after.unique_key, after.alone_key) == (None, pushed.alone_key)
    assert (await fail.push("Ann")).new


async def test_a_failed_job_that_is_run_again_does_not_take_its_key_again() -> None:
    queue = Queue(store := MemoryStore(), clock=FakeClock())

    @queue.handle("fail", unique=True, attempts=1)
    async def fail(name: str) -> None:
        raise RuntimeError(name)

    answer = await fail.push("Ann")
    await queue.drain()
    assert await queue.run_again(answer.id)
    assert [job.unique_key for job in await store.jobs(now=0)] == [None]
    assert (await fail.push("Ann")).new


async def test_a_job_put_back_by_the_stop_leaves_its_unique_key_free() -> None:
    app = App(unique=Unique(one_at_a_time=True))
    app.queue.grace = 0.001
    app.block("Ann")
    running = asyncio.create_task(app.queue.run())
    await app.greet.push("Ann")
    await app.next_start()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    (back,) = await app.jobs()
    assert (back.held_ms, back.unique_key) == (None, None)
    assert back.alone_key is not None


async def test_a_lost_worker_s_job_keeps_others_of_its_value_away_until_its_hold_ends() -> None:
    app = App(unique=Unique(one_at_a_time=True))
    await app.greet.push("Ann")
    now = app.queue.clock.now()
    await app.store.claim(now, token=1, limit=1, queues=None, kinds={"greet"})
    assert (await app.greet.push("Ann")).new
    assert await app.drain(after=119.999) == 0
    assert await app.drain(after=0.001) == 2


async def test_a_held_back_job_takes_its_unique_key_again() -> None:
    app = App(unique=True, rate=Says(60))
    waiting = await app.greet.push("Ann")
    await app.drain()
    assert await app.greet.push("Ann") == Pushed(waiting.id, False)


async def test_a_held_back_job_leaves_its_unique_key_to_another_that_has_taken_it() -> None:
    class PushesMeanwhile(Says):
        async def ask(self, kind: str, /) -> float | timedelta:
            if not self.asked:
                assert (await app.greet.push("Ann")).new
            return await super().ask(kind)

    app = App(unique=True, rate=PushesMeanwhile(60))
    await app.greet.push("Ann")
    await app.drain()
    first, second = await app.jobs()
    assert first.unique_key is None
    assert second.unique_key is not None


# -- what a store must keep ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lacks", "option"),
    [
        (Keep.KEYS, {"unique": True}),
        (Keep.LATEST, {"unique": Unique(latest=True)}),
        (Keep.ONE_AT_A_TIME, {"unique": Unique(one_at_a_time=True)}),
        (Keep.AT_ONCE, {"at_once": 2}),
    ],
)
def test_an_option_that_the_store_does_not_keep_is_refused(lacks: Keep, option: dict[str, Any]) -> None:
    with pytest.raises(Unsupported, match=f"'greet': the memory store does not keep {lacks.value}"):
        App(keeping(lacks), **option)


def test_a_rate_needs_a_store_that_can_hold_a_kind_back() -> None:
    store = MemoryStore()
    store.holds = None
    with pytest.raises(Unsupported, match="does not keep holding a kind back"):
        App(store, rate=Says())


def test_a_throttle_needs_a_store_that_counts() -> None:
    store = MemoryStore()
    store.throttles = None
    with pytest.raises(Unsupported, match="does not keep counting tries"):
        App(store, rate=Throttle(1, 1))

    own = Throttle(1, 1, store=MemoryStore())
    app = App(store, rate=own)
    assert app.queue.limiter_of(app.greet) is own


def test_at_once_of_none_is_refused() -> None:
    with pytest.raises(OptionError, match="at_once=0"):
        App(at_once=0)


# -- at once -------------------------------------------------------------------------------------------------------


async def test_at_once_two_starts_a_third_as_soon_as_one_ends_though_the_poll_is_an_hour() -> None:
    app = App(TakesItsTime(), at_once=2)
    app.block("a", "b", "c")
    await app.greet.push_many(["a", "b", "c"])
    async with app.running():
        assert {await app.next_start(), await app.next_start()} == {"a", "b"}
        await app.settled()
        assert app.seen == ["a", "b"]
        app.release("b")
        assert await app.next_start() == "c"


async def test_at_once_one_blocks_no_other_kind() -> None:
    app = App(at_once=1)
    app.block("a")

    @app.queue.handle("other")
    async def other(name: str) -> None:
        await app.work(name)

    async with app.running():
        await app.greet.push_many(["a", "b"])
        await other.push("x")
        assert {await app.next_start(), await app.next_start()} == {"a", "x"}
        await app.settled()
        assert sorted(app.seen) == ["a", "x"]


async def test_a_limit_is_the_one_a_job_was_pushed_with() -> None:
    store = MemoryStore()
    await App(store, at_once=1).greet.push_many(["a", "b"])

    after_deploy = App(store, at_once=3)
    after_deploy.block("a", "b", "c", "d")
    async with after_deploy.running():
        await after_deploy.greet.push("c")
        await after_deploy.settled()
        assert sorted(after_deploy.seen) == ["a", "c"]
        await after_deploy.greet.push("d")
        await after_deploy.settled()
        assert sorted(after_deploy.seen) == ["a", "c", "d"]


async def test_jobs_from_before_any_limit_run_without_it_and_count() -> None:
    store = MemoryStore()
    await App(store).greet.push_many(["a", "b"])
    limited = App(store, at_once=2)
    limited.block("a", "b", "c")
    async with limited.running():
        await limited.greet.push("c")
        await limited.settled()
        assert sorted(limited.seen) == ["a", "b"]


# -- rate ----------------------------------------------------------------------------------------------------------


async def test_a_refused_job_waits_as_long_as_the_limiter_says_and_keeps_its_attempt() -> None:
    limiter = Says(0, timedelta(minutes=1))
    app = App(rate=limiter, attempts=1)
    await app.greet.push_many(["a", "b"])
    await app.drain()
    assert (app.seen, limiter.asked) == (["a"], ["greet", "greet"])
    (waiting,) = await app.jobs()
    assert (waiting.attempts, waiting.error, waiting.held_ms) == (0, None, None)

    assert await app.drain(after=59.999) == 0
    assert len(limiter.asked) == 2
    await app.drain(after=0.001)
    assert app.seen == ["a", "b"]
    assert [(ran.outcome, ran.attempt) for ran in app.ran] == [
        (Outcome.DONE, 1),
        (Outcome.HELD_BACK, 1),
        (Outcome.DONE, 1),
    ]
    assert (app.ran[1].took, app.ran[1].error) == (0, None)


async def test_a_kind_is_held_back_on_every_instance() -> None:
    store, clock = MemoryStore(), FakeClock()
    one, other = Says(0, 60), Says()
    first, second = App(store, clock, rate=one), App(store, clock, rate=other)
    await first.greet.push_many(["a", "b", "c"])
    await first.drain()
    assert await second.drain() == 0
    assert (len(one.asked), other.asked) == (2, [])
    await second.drain(after=60)
    assert second.seen == ["b", "c"]


async def test_a_kind_that_is_held_back_lets_others_through() -> None:
    app = App(rate=Says(60))

    @app.queue.handle("other")
    async def other(name: str) -> None:
        await app.work(name)

    await app.greet.push_many(["a", "b"])
    await other.push("x")
    await app.drain()
    assert app.seen == ["x"]


@pytest.mark.parametrize("answer", [RuntimeError("no redis"), float("nan"), "soon"])
async def test_a_limiter_that_fails_holds_its_kind_back_for_ten_seconds(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    app = App(rate=Says(answer))
    await app.greet.push("a")
    await app.drain()
    (error,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert "a limiter could not say whether a job may start: kind=greet" in error
    assert await app.drain(after=9.999) == 0
    await app.drain(after=0.001)
    assert app.seen == ["a"]
    assert [(ran.outcome, ran.attempt) for ran in app.ran] == [(Outcome.HELD_BACK, 1), (Outcome.DONE, 1)]


async def test_a_stop_while_the_limiter_is_asked_leaves_the_job_as_it_was_and_holds_nothing_back() -> None:
    class NeverAnswers:
        def __init__(self) -> None:
            self.asked = asyncio.Event()

        async def ask(self, kind: str, /) -> float:
            self.asked.set()
            await asyncio.Event().wait()
            return 0

    limiter = NeverAnswers()
    store, clock = MemoryStore(), FakeClock()
    app = App(store, clock, rate=limiter)
    app.queue.grace = 0.001
    await app.greet.push("a")
    async with app.running():
        await asyncio.wait_for(limiter.asked.wait(), 5)
    (back,) = await app.jobs()
    assert (back.attempts, back.held_ms, back.error) == (0, None, None)
    assert await App(store, clock).drain() == 1


async def test_a_hundred_jobs_of_one_attempt_all_succeed_under_ten_a_second() -> None:
    app = App(rate=Throttle(10, 1), attempts=1)
    await app.greet.push_many([str(n) for n in range(100)])
    done: list[int] = []
    for _ in range(10):
        await app.drain()
        done.append(len(app.seen))
        app.clock.move(1)
    assert done == list(range(10, 101, 10))
    assert await app.jobs() == []


async def test_two_kinds_that_share_a_throttle_are_counted_apart() -> None:
    throttle = Throttle(1, 60, name="mail")
    app = App(rate=throttle)

    @app.queue.handle("other", rate=throttle)
    async def other(name: str) -> None:
        await app.work(name)

    await app.greet.push("a")
    await other.push("x")
    await app.drain()
    assert app.seen == ["a", "x"]


# -- together ------------------------------------------------------------------------------------------------------


async def test_a_schedule_s_run_has_its_kind_s_key_and_limits() -> None:
    app = App(unique=Unique(one_at_a_time=True), at_once=2)
    app.greet.schedule(every(60), "Ann")
    ((kind, scheduled),) = app.queue.schedules
    run = kind.run_of(scheduled, as_moment("at", app.clock()))
    await app.greet.push("Ann")
    (pushed,) = await app.jobs()
    assert (run.unique_key, run.alone_key, run.at_once) == (pushed.unique_key, pushed.alone_key, 2)

"""Limits on their way through a queue, on every store: unique, latest, one at a time, at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from fastqueue import Permanent, Pushed, Queue, Throttle, Unique, constant, every
from fastqueue.clock import as_moment
from fastqueue.errors import OptionError, Unsupported, ValueRefused
from fastqueue.outcome import Settlement
from fastqueue.store import Keep
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import FakeClock
from tests.limited import App, Apps, Says

# -- unique --------------------------------------------------------------------------------------------------------


async def test_of_a_unique_job_s_pushes_the_waiting_one_stays_where_it_is(apps: Apps) -> None:
    app = apps(unique=True)
    first = await app.greet.push("Ann", delay=60)
    assert await app.greet.push("Ann") == Pushed(first.id, False)
    assert (await app.greet.push("Bob")).new
    assert not (await app.greet.push("Bob")).new
    await app.drain()
    assert app.seen == ["Bob"]
    await app.drain(after=60)
    assert app.seen == ["Bob", "Ann"]


async def test_a_handler_can_push_its_own_value(apps: Apps) -> None:
    app = apps()
    left = [True]

    @app.queue.handle("again", unique=True)
    async def again(name: str) -> None:
        if left:
            left.pop()
            await again.push(name)

    await again.push("Ann")
    assert await app.drain() == 2


async def test_pushes_by_two_instances_of_one_value_are_one_job(apps: Apps) -> None:
    one, other = apps(unique=True), apps(unique=True)
    pushed = await asyncio.gather(*(app.greet.push("Ann") for app in (one, other) for _ in range(5)))
    assert [answer.new for answer in pushed].count(True) == 1
    assert len({answer.id for answer in pushed}) == 1
    assert await one.drain() + await other.drain() == 1


async def test_latest_moves_the_waiting_job_to_the_last_push_earlier_or_later(apps: Apps) -> None:
    app = apps(unique=Unique(latest=True))
    await app.greet.push("Ann", delay=60)
    app.clock.move(120)
    await app.greet.push("Ann", delay=60)
    assert await app.drain() == 0
    assert await app.drain(after=60) == 1

    await app.greet.push("Ann", delay=60)
    await app.greet.push("Ann")
    assert await app.drain() == 1
    assert await app.jobs() == []


async def test_latest_moves_no_job_that_runs(apps: Apps) -> None:
    app = apps(unique=Unique(latest=True))
    app.block("Ann")
    async with app.running():
        await app.greet.push("Ann")
        await app.next_start()
        assert (await app.greet.push("Ann", delay=60)).new
        app.release("Ann")
        await app.passed_by()
    assert await app.drain() == 0
    assert await app.drain(after=60) == 1


async def test_one_at_a_time_keeps_two_of_a_value_apart_and_nobody_else(apps: Apps) -> None:
    app = apps(unique=Unique(one_at_a_time=True))
    app.block("Ann")
    async with app.running():
        await app.greet.push("Ann")
        assert await app.next_start() == "Ann"
        await app.greet.push("Ann")
        await app.greet.push("Bob")
        assert await app.next_start() == "Bob"
        await app.passed_by()
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


async def test_a_running_job_s_unique_key_is_free(apps: Apps) -> None:
    app = apps(unique=True)
    app.block("Ann")
    async with app.running():
        await app.greet.push("Ann")
        await app.next_start()
        assert [job.unique_key for job in await app.jobs()] == [None]
        assert (await app.greet.push("Ann")).new
        assert await app.next_start() == "Ann"


@pytest.mark.parametrize("error", [RuntimeError("later"), Permanent("never")])
async def test_a_failed_run_leaves_the_unique_key_free_and_keeps_the_one_it_runs_alone_by(
    apps: Apps, error: Exception
) -> None:
    app = apps()

    @app.queue.handle("fail", unique=Unique(one_at_a_time=True), backoff=constant(60))
    async def fail(name: str) -> None:
        raise error

    await fail.push("Ann")
    (pushed,) = await app.jobs()
    assert pushed.unique_key == pushed.alone_key is not None
    await app.drain()
    (after,) = await app.jobs()
    assert (after.unique_key, after.alone_key) == (None, pushed.alone_key)
    assert (await fail.push("Ann")).new


async def test_a_failed_job_that_is_run_again_does_not_take_its_key_again(apps: Apps) -> None:
    app = apps()

    @app.queue.handle("fail", unique=Unique(one_at_a_time=True), attempts=1)
    async def fail(name: str) -> None:
        raise RuntimeError(name)

    answer = await fail.push("Ann")
    (pushed,) = await app.jobs()
    await app.drain()
    assert await app.queue.run_again(answer.id)
    assert [(job.unique_key, job.alone_key) for job in await app.jobs()] == [(None, pushed.alone_key)]
    assert (await fail.push("Ann")).new


async def test_a_job_put_back_by_the_stop_leaves_its_unique_key_free(apps: Apps) -> None:
    app = apps(unique=Unique(one_at_a_time=True))
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


async def test_a_lost_worker_s_job_keeps_others_of_its_value_away_until_its_hold_ends(apps: Apps) -> None:
    app = apps(unique=Unique(one_at_a_time=True))
    await app.greet.push("Ann")
    await lose_worker(apps, limit=1)
    assert (await app.greet.push("Ann")).new
    assert await app.drain(after=119.999) == 0
    assert await app.drain(after=0.001) == 2


async def test_a_held_back_job_takes_its_unique_key_again(apps: Apps) -> None:
    app = apps(unique=True, rate=Says(60))
    waiting = await app.greet.push("Ann")
    await app.drain()
    assert await app.greet.push("Ann") == Pushed(waiting.id, False)


async def test_a_held_back_job_leaves_its_unique_key_to_another_that_has_taken_it(apps: Apps) -> None:
    class PushesMeanwhile(Says):
        async def ask(self, kind: str, /) -> Any:
            if not self.asked:
                assert (await app.greet.push("Ann")).new
            return await super().ask(kind)

    app = apps(unique=True, rate=PushesMeanwhile(60))
    await app.greet.push("Ann")
    await app.drain()
    first, second = await app.jobs()
    assert first.unique_key is None
    assert second.unique_key is not None


async def lose_worker(apps: Apps, *, limit: int) -> None:
    """A worker claims jobs of the kind "greet", and is never heard of again."""
    store = await apps.store()
    now = as_moment("now", apps.clock())
    assert len((await store.claim(now, token=1, limit=limit, queues=None, kinds={"greet"})).jobs) == limit


# -- at once -------------------------------------------------------------------------------------------------------


async def test_at_once_two_starts_a_third_as_soon_as_one_ends_though_the_poll_is_an_hour(apps: Apps) -> None:
    app = apps(at_once=2)
    app.block("a", "b", "c")
    await app.greet.push_many(["a", "b", "c"])
    async with app.running():
        assert {await app.next_start(), await app.next_start()} == {"a", "b"}
        await app.passed_by()
        assert app.seen == ["a", "b"]
        app.release("b")
        assert await app.next_start() == "c"


async def test_at_once_one_blocks_no_other_kind(apps: Apps) -> None:
    app = apps(at_once=1)
    app.block("a")
    async with app.running():
        await app.greet.push_many(["a", "b"])
        await app.other.push("x")
        assert {await app.next_start(), await app.next_start()} == {"a", "x"}
        await app.passed_by()
        assert sorted(app.seen) == ["a", "x"]


async def test_a_limit_counts_what_other_instances_run(apps: Apps) -> None:
    one, other = apps(at_once=2), apps(at_once=2)
    one.block("a", "b")
    await one.greet.push_many(["a", "b", "c"])
    async with one.running():
        assert {await one.next_start(), await one.next_start()} == {"a", "b"}
        assert await other.drain() == 0
        one.release("b")
        assert await one.next_start() == "c"
        assert await other.drain() == 0


async def test_a_limit_is_the_one_a_job_was_pushed_with(apps: Apps) -> None:
    await apps(at_once=1).greet.push_many(["a", "b"])

    after_deploy = apps(at_once=3)
    after_deploy.block("a", "b", "c", "d")
    async with after_deploy.running():
        await after_deploy.greet.push("c")
        await after_deploy.passed_by()
        assert sorted(after_deploy.seen) == ["a", "c"]
        await after_deploy.greet.push("d")
        await after_deploy.passed_by()
        assert sorted(after_deploy.seen) == ["a", "c", "d"]


async def test_jobs_from_before_any_limit_run_without_it_and_count(apps: Apps) -> None:
    await apps().greet.push_many(["a", "b"])
    limited = apps(at_once=2)
    limited.block("a", "b", "c")
    async with limited.running():
        await limited.greet.push("c")
        await limited.passed_by()
        assert sorted(limited.seen) == ["a", "b"]


async def test_a_limit_that_a_deploy_takes_away_binds_the_jobs_that_waited(apps: Apps) -> None:
    await apps(at_once=1).greet.push_many(["a", "b"])
    free = apps()
    free.block("a", "b", "c", "d")
    async with free.running():
        await free.greet.push_many(["c", "d"])
        await free.passed_by()
        assert sorted(free.seen) == ["a", "c", "d"]


async def test_the_jobs_of_a_lost_worker_count_until_their_holds_end(apps: Apps) -> None:
    app = apps(at_once=2)
    await app.greet.push_many(["a", "b", "c"])
    await lose_worker(apps, limit=2)
    assert await app.drain(after=119.999) == 0
    assert await app.drain(after=0.001) == 3
    assert app.seen == ["a", "b", "c"]


# -- together ------------------------------------------------------------------------------------------------------


async def test_a_schedule_s_run_has_its_kind_s_key_and_limits() -> None:
    app = App(MemoryStore(), FakeClock(), unique=Unique(one_at_a_time=True), at_once=2)
    app.greet.schedule(every(60), "Ann")
    ((kind, scheduled),) = app.queue.schedules
    run = kind.run_of(scheduled, as_moment("at", app.clock()))
    await app.greet.push("Ann")
    (pushed,) = await app.jobs()
    assert (run.unique_key, run.alone_key, run.at_once) == (pushed.unique_key, pushed.alone_key, 2)


async def test_a_settlement_that_comes_too_late_frees_no_place(apps: Apps) -> None:
    app = apps(at_once=1)
    await app.greet.push_many(["a", "b"])
    store = await apps.store()
    now = as_moment("now", apps.clock())
    (first,) = (await store.claim(now, token=1, limit=1, queues=None, kinds={"greet"})).jobs
    later = now + 120_000
    (again,) = (await store.claim(later, token=2, limit=9, queues=None, kinds={"greet"})).jobs
    assert (first.id, again.lost) == (again.id, True)
    assert await store.settle([Settlement.done(first)]) == [False]
    assert (await store.claim(later, token=3, limit=9, queues=None, kinds={"greet"})).jobs == []


# -- what a store must keep ----------------------------------------------------------------------------------------


def keeping(*lacks: Keep) -> MemoryStore:
    """A store that keeps everything but this."""

    class Lacking(MemoryStore):
        keeps = frozenset(Keep) - set(lacks)

    return Lacking()


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
        App(keeping(lacks), FakeClock(), **option)


def test_a_rate_needs_a_store_that_can_hold_a_kind_back() -> None:
    store = MemoryStore()
    store.holds = None
    with pytest.raises(Unsupported, match="does not keep holding a kind back"):
        App(store, FakeClock(), rate=Says())


def test_a_throttle_needs_a_store_that_counts() -> None:
    store = MemoryStore()
    store.throttles = None
    with pytest.raises(Unsupported, match="does not keep counting tries"):
        App(store, FakeClock(), rate=Throttle(1, 1))

    own = Throttle(1, 1, store=MemoryStore())
    app = App(store, FakeClock(), rate=own)
    assert app.queue.limiter_of(app.greet) is own


def test_at_once_of_none_is_refused() -> None:
    with pytest.raises(OptionError, match="at_once=0"):
        App(MemoryStore(), FakeClock(), at_once=0)

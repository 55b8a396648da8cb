"""Rates on their way through a queue, on every store: kinds held back, and the jobs of each window."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any

import pytest

from fastqueue import Outcome, Throttle, Unique
from fastqueue.clock import as_moment
from tests.limited import Apps, Says


async def test_a_refused_job_waits_as_long_as_the_limiter_says_and_keeps_its_attempt(apps: Apps) -> None:
    limiter = Says(0, timedelta(minutes=1))
    app = apps(rate=limiter, attempts=1)
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


async def test_a_kind_is_held_back_on_every_instance(apps: Apps) -> None:
    one, other = Says(0, 60), Says()
    first, second = apps(rate=one), apps(rate=other)
    await first.greet.push_many(["a", "b", "c"])
    await first.drain()
    assert await second.drain() == 0
    assert (len(one.asked), other.asked) == (2, [])
    await second.drain(after=60)
    assert second.seen == ["b", "c"]


async def test_a_kind_that_is_held_back_lets_others_through(apps: Apps) -> None:
    app = apps(rate=Says(60))
    await app.greet.push_many(["a", "b"])
    await app.other.push("x")
    await app.drain()
    assert app.seen == ["x"]


async def test_a_refused_job_frees_its_place_under_at_once(apps: Apps) -> None:
    app = apps(rate=Says(60), at_once=1, unique=Unique(one_at_a_time=True))
    await app.greet.push("a")
    await app.drain()
    await app.drain(after=60)
    assert app.seen == ["a"]


@pytest.mark.parametrize(
    "answer", [RuntimeError("no redis"), asyncio.CancelledError("no redis"), SystemExit(1), float("nan"), "soon"]
)
async def test_a_limiter_that_fails_holds_its_kind_back_for_ten_seconds(
    apps: Apps, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    app = apps(rate=Says(answer), attempts=1)
    await app.greet.push("a")
    await app.drain()
    (error,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert "a limiter could not say whether a job may start: kind=greet" in error
    assert await app.drain(after=9.999) == 0
    await app.drain(after=0.001)
    assert app.seen == ["a"]
    assert [(ran.outcome, ran.attempt) for ran in app.ran] == [(Outcome.HELD_BACK, 1), (Outcome.DONE, 1)]


class NeverAnswers:
    """A limiter that hangs."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def ask(self, kind: str, /) -> float:
        self.asked.set()
        await asyncio.Event().wait()
        return 0


async def test_a_limiter_that_hangs_has_failed(
    apps: Apps, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("fastqueue.worker.run.LIMITER_ANSWERS_WITHIN", 0.01)
    app = apps(rate=NeverAnswers(), attempts=1)
    await app.greet.push_many(["a", "b"])
    await app.other.push("x")
    await app.drain()
    assert app.seen == ["x"]
    (error,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert "no answer within 0.01 s" in error
    assert [(ran.outcome, ran.attempt) for ran in app.ran] == [(Outcome.HELD_BACK, 1)]
    mended = apps()
    assert await mended.drain(after=9.999) == 0
    assert await mended.drain(after=0.001) == 2


async def test_a_stop_while_the_limiter_is_asked_leaves_the_job_as_it_was_and_holds_nothing_back(apps: Apps) -> None:
    limiter = NeverAnswers()
    app = apps(rate=limiter)
    app.queue.grace = 0.001
    await app.greet.push("a")
    async with app.running():
        await asyncio.wait_for(limiter.asked.wait(), 10)
    (back,) = await app.jobs()
    assert (back.attempts, back.held_ms, back.error) == (0, None, None)
    assert await apps().drain() == 1


async def test_a_stop_does_not_wait_for_the_limiter_of_a_handler_that_is_to_run_in_a_thread(apps: Apps) -> None:
    limiter = NeverAnswers()
    app = apps()

    @app.queue.handle("in-a-thread", rate=limiter)
    def in_a_thread(name: str) -> None:
        app.seen.append(name)

    app.queue.grace = 0.001
    await in_a_thread.push("a")
    async with app.running():
        await asyncio.wait_for(limiter.asked.wait(), 10)
    (back,) = await app.jobs()
    assert (back.attempts, back.held_ms, app.seen) == (0, None, [])


# -- throttles -----------------------------------------------------------------------------------------------------


async def test_a_hundred_jobs_of_one_attempt_all_succeed_under_ten_a_second_while_others_run_freely(apps: Apps) -> None:
    app = apps(rate=Throttle(10, 1), attempts=1)
    await app.greet.push_many([str(n) for n in range(100)])
    windows: list[tuple[int, int]] = []
    for _ in range(10):
        await app.other.push_many(["x"] * 3)
        await app.drain()
        windows.append((len(app.seen) - app.seen.count("x"), app.seen.count("x")))
        app.clock.move(1)
    assert windows == [(10 * n, 3 * n) for n in range(1, 11)]
    assert await app.jobs() == []
    outcomes = [ran.outcome for ran in app.ran]
    assert (outcomes.count(Outcome.DONE), outcomes.count(Outcome.HELD_BACK), len(outcomes)) == (100, 9, 109)
    assert {ran.attempt for ran in app.ran} == {1}


async def test_two_instances_share_a_throttle_s_windows(apps: Apps) -> None:
    instances = [apps(rate=Throttle(3, 60), attempts=1) for _ in range(2)]
    await instances[0].greet.push_many(["a"] * 7)
    for window in range(1, 4):
        for instance in instances:
            await instance.drain()
        assert sum(len(instance.seen) for instance in instances) == min(3 * window, 7)
        apps.clock.move(60)


async def test_two_kinds_that_share_a_throttle_are_counted_apart(apps: Apps) -> None:
    throttle = Throttle(1, 60, name="mail")
    app = apps(rate=throttle)

    @app.queue.handle("letter", rate=throttle)
    async def letter(name: str) -> None:
        app.seen.append(name)

    await app.greet.push_many(["a", "b"])
    await letter.push_many(["x", "y"])
    await app.drain()
    assert app.seen == ["a", "x"]
    await app.drain(after=60)
    assert app.seen == ["a", "x", "b", "y"]


async def test_a_throttle_that_a_deploy_changes_counts_on_in_the_window_that_runs(apps: Apps) -> None:
    before = apps(rate=Throttle(2, 60))
    await before.greet.push_many(["a", "b", "c", "d"])
    assert await before.drain() == 3
    after = apps(rate=Throttle(5, 10))
    assert await after.drain() == 0
    assert await after.drain(after=60) == 2
    assert [*before.seen, *after.seen] == ["a", "b", "c", "d"]


async def test_a_clock_that_steps_back_starts_no_job_early_and_loses_none(apps: Apps) -> None:
    app = apps(rate=Throttle(2, 60), attempts=1)
    await app.greet.push_many(["a", "b", "c", "d", "e"])
    await app.drain()
    app.clock.move(-3600)
    assert await app.drain() == 0
    assert await app.drain(after=3600 + 59.999) == 0
    await app.drain(after=0.001)
    await app.drain(after=60)
    assert app.seen == ["a", "b", "c", "d", "e"]
    assert await app.jobs() == []


async def test_a_worker_that_is_lost_after_its_limiter_was_asked_loses_no_job(apps: Apps) -> None:
    app = apps(rate=Throttle(1, 60), attempts=2)
    await app.greet.push_many(["a", "b"])
    store = await apps.store()
    await store.claim(as_moment("now", apps.clock()), token=1, limit=1, queues=None, kinds={"greet"})
    await app.drain()
    assert app.seen == ["b"]
    await app.drain(after=120)
    assert app.seen == ["b", "a"]

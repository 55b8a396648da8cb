from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from fastqueue import Defaults, Kind, Queue, Run, constant, exponential, quartic
from fastqueue.errors import KindError, OptionError
from fastqueue.job import Claimed
from fastqueue.options import Given, options_of
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import FakeClock


class App:
    """A queue with one kind, whose handler fails, and what it saw of each attempt."""

    def __init__(self, **options: Any) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore()
        self.queue = Queue(self.store, clock=self.clock, defaults=options.pop("defaults", None))
        self.runs: list[Run] = []

        @self.queue.handle("fail", **options)
        async def fail(name: str, run: Run) -> None:
            self.runs.append(run)
            raise RuntimeError(name)

        self.fail: Kind[str] = fail


def claimed(options: str | None) -> Claimed:
    return Claimed(
        id=1,
        token=1,
        kind="fail",
        queue="default",
        payload="{}",
        run_at=0,
        held_until=1,
        hold_ms=1,
        attempts=1,
        options=options,
    )


async def test_what_a_push_sets_is_kept_with_the_job_and_goes_before_its_kind_s() -> None:
    app = App(attempts=5, backoff=constant(3600))
    await app.fail.push("x", attempts=2, backoff=constant(7), timeout=None)
    (job,) = await app.store.jobs(now=0)
    assert json.loads(job.options or "") == {"attempts": 2, "timeout_ms": None, "backoff": "constant(7.0)"}

    await app.queue.drain()
    app.clock.move(6.999)
    assert await app.queue.drain() == 0
    app.clock.move(0.001)
    assert await app.queue.drain() == 1
    assert [(run.attempt, run.attempts_left, run.deadline) for run in app.runs] == [(1, 1, None), (2, 0, None)]
    (failed,) = await app.queue.failed()
    assert failed.attempts == 2


async def test_a_push_that_sets_nothing_keeps_nothing_and_follows_its_kind() -> None:
    app = App(attempts=1)
    await app.fail.push("x")
    (job,) = await app.store.jobs(now=0)
    assert job.options is None
    await app.queue.drain()
    assert [job.attempts for job in await app.queue.failed()] == [1]


async def test_retries_are_the_runs_after_the_first() -> None:
    app = App(retries=1, backoff=constant(0))
    await app.fail.push("x")
    await app.fail.push("y", retries=0)
    assert await app.queue.drain() == 3


async def test_a_push_can_name_another_queue() -> None:
    app = App(queue="slow")
    await app.fail.push("x")
    await app.fail.push("y", queue="fast")
    assert [job.queue for job in await app.store.jobs(now=0)] == ["slow", "fast"]


async def test_a_backoff_function_is_given_the_attempt_that_failed() -> None:
    asked: list[int] = []

    def wait(attempt: int) -> float:
        asked.append(attempt)
        return -1

    app = App(attempts=3, backoff=wait)
    await app.fail.push("x")
    await app.queue.drain()
    assert asked == [1, 2]


async def test_a_backoff_that_fails_has_the_job_wait_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    def wait(attempt: int) -> float:
        raise RuntimeError("no idea")

    app = App(attempts=2, backoff=wait)
    await app.fail.push("x")
    await app.queue.drain()
    app.clock.move(59.999)
    assert await app.queue.drain() == 0
    app.clock.move(0.001)
    assert await app.queue.drain() == 1
    assert "a backoff failed" in caplog.text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"attempts": 0}, "attempts=0; it takes a whole number of at least 1"),
        ({"attempts": True}, "attempts=True"),
        ({"attempts": 2.0}, "attempts=2.0"),
        ({"retries": -1}, "retries=-1; it takes a whole number of at least 0"),
        ({"attempts": 3, "retries": 2}, "give one: attempts=n is retries=n-1"),
        ({"timeout": 0}, "timeout=0; it takes more than 0 seconds"),
        ({"timeout": -1}, "timeout=-1"),
        ({"timeout": "1m"}, "timeout='1m' is no duration"),
        ({"timeout": float("inf")}, "timeout=inf"),
        ({"backoff": 5}, "backoff=5; it takes quartic"),
        ({"queue": ""}, "queue"),
        ({"unique": 1}, r"unique=1; it takes True or Unique"),
        ({"at_once": 0}, "at_once=0"),
        ({"at_once": -1}, "at_once=-1"),
        ({"rate": 5}, "rate=5; it takes Throttle"),
    ],
)
def test_a_kind_s_option_that_cannot_be_is_refused_with_the_kind_s_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message) as refused:
        App(**given)
    assert "'fail'" in str(refused.value)


@pytest.mark.parametrize("given", [{"attempts": 0}, {"timeout": 0}, {"backoff": 5}, {"attempts": 1, "retries": 1}])
async def test_a_push_s_option_that_cannot_be_is_refused_and_nothing_is_kept(given: dict[str, Any]) -> None:
    app = App()
    with pytest.raises(OptionError, match="push of 'fail': "):
        await app.fail.push("x", **given)
    assert await app.store.jobs(now=0) == []


async def test_a_push_with_a_backoff_that_cannot_be_kept_is_refused() -> None:
    app = App()
    with pytest.raises(OptionError, match="set the function on the kind"):
        await app.fail.push("x", backoff=lambda _: 1)
    assert await app.store.jobs(now=0) == []


def test_an_option_there_is_not_is_told_with_the_nearest() -> None:
    with pytest.raises(OptionError, match="no option 'atempts'; did you mean 'attempts'"):
        App(atempts=3)


def test_an_on_fail_that_cannot_take_value_and_error_is_refused() -> None:
    app = App()
    with pytest.raises(KindError, match="called with the value and the error"):

        @app.fail.on_fail  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        def gone(value: str) -> None: ...


@pytest.mark.parametrize(
    "given",
    [
        {"attempts": 0},
        {"timeout": 0},
        {"backoff": 1},
        {"queue": ""},
        {"interruptions": -1},
        {"margin": 0},
        {"hold_at_most": 0},
        {"hold_at_most": -1},
        {"margin": "1"},
    ],
)
def test_defaults_that_cannot_be_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        Defaults(**given)


def test_kinds_take_the_queue_s_defaults_for_what_they_were_not_given() -> None:
    app = App(defaults=Defaults(attempts=3, timeout=None, queue="slow", backoff=constant(1)))
    options = app.fail.options
    assert (options.attempts, options.timeout_ms, options.queue, options.backoff) == (3, None, "slow", constant(1))
    own = App(defaults=Defaults(attempts=3, timeout=None), attempts=4, timeout=1.5).fail.options
    assert (own.attempts, own.timeout_ms) == (4, 1500)


def test_without_defaults_of_its_own_a_queue_has_ten_attempts_of_a_minute() -> None:
    options = App().fail.options
    assert (options.attempts, options.timeout_ms, options.queue) == (10, 60_000, "default")
    assert (options.backoff, options.unique, options.at_once, options.rate) == (quartic(), None, 0, None)


def test_vukem_s_defaults_are_three_retries_that_double() -> None:
    defaults = Defaults.vukem()
    assert defaults.attempts == 4
    assert [defaults.backoff(attempt) for attempt in (1, 2, 3, 99)] == [1, 2, 4, 3600]


@pytest.mark.parametrize(
    ("timeout", "hold_s"), [(60, 120), (0.5, 60.5), (None, 360), (300, 360), (timedelta(hours=1), 360)]
)
def test_a_claim_holds_a_job_for_its_timeout_and_the_margin_within_bounds(
    timeout: float | timedelta | None, hold_s: float
) -> None:
    assert App(timeout=timeout).fail.options.hold_ms == hold_s * 1000


@pytest.mark.parametrize("kept", ["", "{", "[]", "7", '{"attempts": "many"}', '{"timeout_ms": []}'])
def test_kept_options_that_cannot_be_read_leave_the_kind_s(kept: str) -> None:
    options = App(attempts=5).fail.options
    assert options_of(claimed(kept), options) == options


def test_of_kept_options_only_what_this_version_knows_is_used() -> None:
    options = App(attempts=5, backoff=constant(1)).fail.options
    read = options_of(claimed('{"attempts": 2, "backoff": "lunar(3)", "colour": "red"}'), options)
    assert (read.attempts, read.backoff, read.timeout_ms) == (2, constant(1), 60_000)


def test_what_a_push_sets_comes_back_from_its_text() -> None:
    given = Given(retries=2, timeout=1.5, backoff=exponential(2, 60))
    read = options_of(claimed(given.text()), App().fail.options)
    assert (read.attempts, read.timeout_ms, read.backoff) == (3, 1500, exponential(2, 60))

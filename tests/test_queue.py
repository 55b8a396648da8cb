"""The queue itself: what it registers and refuses, how it opens, and what it does beside running jobs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import anyio.to_thread
import pytest

import fastqueue.health
from fastqueue import Defaults, Kind, Kinds, Queue, Throttle, Unique, constant, every
from fastqueue.errors import KindError, OptionError, RegistrationError, StoreUnavailable, Unsupported
from fastqueue.health import warn_that_nothing_runs
from fastqueue.starlette import CarryRequestID
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import FakeClock
from tests.worker.stage import running

SOON = 20.0


class Plain(MemoryStore):
    """Keeps jobs and nothing that a push may ask beyond that."""

    name = "plain"
    keeps = frozenset()

    def __init__(self) -> None:
        super().__init__()
        self.schedules = self.holds = self.failed = self.throttles = None


async def greet(name: str) -> None:
    """A handler that has nothing to do."""


def gave_up(name: str, error: Exception) -> None:
    """An `on_fail` that has nobody to tell."""


def only_the_value(name: str) -> None:
    """No `on_fail`: it does not take the error."""


def test_a_name_has_one_handler() -> None:
    queue = Queue("memory://")
    queue.handle("greet", greet)
    with pytest.raises(RegistrationError, match="kind 'greet' is there already; each name has one handler"):
        queue.handle("greet", greet)
    again = Kinds()
    again.handle("greet", greet)
    with pytest.raises(RegistrationError, match="'greet' is there already"):
        queue.include(again)


def test_a_kind_belongs_to_one_queue() -> None:
    kinds = Kinds()
    kind = kinds.handle("greet", greet)
    with pytest.raises(RegistrationError, match=r"kind 'greet' belongs to no queue yet; queue\.include"):
        kind.push_sync("Ann")
    Queue("memory://").include(kinds)
    with pytest.raises(RegistrationError, match="kind 'greet' belongs to another queue already"):
        Queue("memory://").include(kinds)


def test_kinds_of_a_module_are_joined_by_include_or_made_by_a_function() -> None:
    kinds, queue = Kinds(), Queue("memory://")
    kinds.handle("greet", greet)

    def make() -> Kinds:
        made = Kinds()
        made.handle("part", greet)
        return made

    queue.include(kinds)
    queue.include(make)
    assert list(queue.kinds) == ["greet", "part"]


def test_a_push_inside_the_function_that_makes_the_kinds_is_refused() -> None:
    queue = Queue("memory://")
    kind = queue.handle("greet", greet)

    def make() -> Kinds:
        kind.push_sync("Ann")
        return Kinds()

    with pytest.raises(RegistrationError, match=r"push of 'greet' inside .*make.*: push after include"):
        queue.include(make)
    assert asyncio.run(queue.store.jobs(now=0)) == []
    assert kind.push_sync("Bob").new, "and allowed again after it"


async def test_nothing_is_registered_after_the_queue_has_run() -> None:
    queue = Queue("memory://")
    kind = queue.handle("greet", greet)
    run = asyncio.create_task(queue.run())
    await asyncio.sleep(0)
    run.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.wait_for(run, SOON)
    late: list[Callable[[], object]] = [
        lambda: queue.handle("part", greet),
        lambda: kind.schedule(every(60), "Ann"),
        lambda: kind.on_fail(gave_up),
    ]
    for register in late:
        with pytest.raises(RegistrationError, match=r"too late: the queue has run; register before queue\.run\(\)"):
            register()


async def test_a_queue_runs_once_at_a_time_and_again_after_it_was_stopped() -> None:
    queue, ran = Queue("memory://"), asyncio.Event()

    @queue.handle("greet")
    async def kind(name: str) -> None:
        ran.set()

    for _ in range(2):
        run = asyncio.create_task(queue.run())
        await kind.push("Ann")
        await asyncio.wait_for(ran.wait(), SOON)
        with pytest.raises(RegistrationError, match="the queue runs already"):
            await queue.run()
        run.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait_for(run, SOON)
        assert queue.state == "stopped"
        ran.clear()


async def test_a_drain_does_not_close_the_registration() -> None:
    queue = Queue("memory://")
    queue.handle("greet", greet)
    await queue.drain()
    queue.handle("part", greet)
    assert len(queue.kinds) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unique": True}, "the plain store does not keep unique keys, which unique=... needs"),
        ({"unique": Unique(latest=True)}, "the plain store does not keep unique keys"),
        ({"unique": Unique(one_at_a_time=True)}, "the plain store does not keep unique keys"),
        ({"at_once": 2}, "the plain store does not keep at most n at once, which at_once=... needs"),
        ({"rate": Throttle(2, 1)}, r"the plain store does not keep holding a kind back, which rate=\.\.\. needs"),
    ],
)
def test_an_option_that_the_store_does_not_keep_is_refused_when_it_is_registered(
    options: dict[str, Any], message: str
) -> None:
    queue = Queue(Plain())
    with pytest.raises(Unsupported, match=f"^kind 'greet': {message}"):
        queue.handle("greet", greet, **options)
    assert queue.kinds == {}


def test_options_beyond_keys_are_refused_by_a_store_that_keeps_keys_only() -> None:
    class Keyed(Plain):
        keeps = frozenset([next(keep for keep in MemoryStore.keeps if keep.value == "unique keys")])

    for unique, option in ((Unique(latest=True), "latest"), (Unique(one_at_a_time=True), "one_at_a_time")):
        with pytest.raises(Unsupported, match=rf"which Unique\({option}=True\) needs"):
            Queue(Keyed()).handle("greet", greet, unique=unique)
    Queue(Keyed()).handle("greet", greet, unique=True)


async def test_what_a_plain_store_lacks_is_refused_where_it_is_asked_for() -> None:
    queue = Queue(Plain())
    kind = queue.handle("greet", greet)
    with pytest.raises(Unsupported, match="kind 'greet': the plain store does not keep schedules"):
        kind.schedule(every(60), "Ann")
    with pytest.raises(Unsupported, match="the plain store keeps no list of failed jobs"):
        await queue.failed()
    await kind.push("Ann")
    assert await queue.drain() == 1


def test_a_handler_without_a_name_is_told_how_to_give_one() -> None:
    with pytest.raises(KindError, match=r'write @queue\.handle\("greet"\)'):
        Queue("memory://").handle(greet)  # type: ignore[call-overload]


def test_an_option_that_is_not_there_is_answered_with_the_nearest() -> None:
    with pytest.raises(OptionError, match="there is no option 'atempts'; did you mean 'attempts'"):
        Queue("memory://").handle("greet", greet, atempts=3)  # type: ignore[call-overload]


def test_an_on_fail_that_cannot_be_called_with_value_and_error_or_is_a_second_one_is_refused() -> None:
    kind: Kind[str] = Queue("memory://").handle("greet", greet)
    with pytest.raises(KindError, match="on_fail is called with the value and the error"):
        kind.on_fail(only_the_value)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    kind.on_fail(gave_up)
    with pytest.raises(RegistrationError, match="has an on_fail already"):
        kind.on_fail(gave_up)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": 0}, "workers=0"),
        ({"poll": -1}, "poll=-1"),
        ({"grace": -1}, "grace=-1"),
        ({"queues": "mail"}, r"queues='mail'; it takes a list: queues=\['mail'\]"),
        ({"queues": 5}, r"queues=5; it takes a list"),
        ({"carry": CarryRequestID()}, r"carry=.*; it takes a list: carry=\["),
        (
            {"carry": [CarryRequestID]},
            r"carry has .*CarryRequestID.*, which is no carrier; .* such as CarryRequestID\(\)",
        ),
        ({"observe": 5}, r"observe=5; it takes a function"),
        ({"clock": 5}, r"clock=5; it takes a function"),
        ({"defaults": 5}, r"defaults=5; it takes Defaults\(...\)"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Queue("memory://", **settings)


@pytest.mark.parametrize("kinds", [None, "kinds", lambda: None])
def test_what_makes_no_kinds_is_refused_where_it_is_included(kinds: Any) -> None:
    with pytest.raises(RegistrationError, match="include takes Kinds, or a function that makes them"):
        Queue("memory://").include(kinds)


@pytest.mark.parametrize("store", ["nowhere", "carrier-pigeon://loft", None, 7])
def test_what_is_no_store_is_refused(store: Any) -> None:
    with pytest.raises(OptionError):
        Queue(store)


async def test_defaults_hold_for_kinds_that_say_nothing() -> None:
    queue = Queue("memory://", clock=FakeClock(), defaults=Defaults(attempts=2, backoff=constant(0), queue="mail"))
    runs: list[str] = []

    @queue.handle("fails")
    async def fails(name: str) -> None:
        runs.append(name)
        raise ValueError

    await fails.push("Ann")
    assert await queue.drain() == 2
    (failed,) = await queue.failed()
    assert (failed.queue, runs) == ("mail", ["Ann", "Ann"])


async def test_failed_jobs_are_listed_the_latest_first_and_by_kind() -> None:
    clock = FakeClock()
    queue = Queue("memory://", clock=clock)

    async def fails(name: str) -> None:
        raise ValueError(name)

    first = queue.handle("first", fails, attempts=1)
    second = queue.handle("second", fails, attempts=1)
    for kind, name in ((first, "Ann"), (second, "Bob"), (first, "Cid")):
        await kind.push(name)
        await queue.drain()
        clock.move(1)
    assert [job.error for job in await queue.failed()] == ["Cid", "Bob", "Ann"]
    assert [job.error for job in await queue.failed(kind="first")] == ["Cid", "Ann"]
    assert [job.error for job in await queue.failed(limit=1)] == ["Cid"]


async def test_a_failed_job_is_run_again_when_it_is_told_to() -> None:
    clock, seen = FakeClock(), list[str]()
    queue = Queue("memory://", clock=clock)

    @queue.handle("greet", attempts=1)
    async def once(name: str) -> None:
        seen.append(name)
        if len(seen) == 1:
            raise ValueError

    pushed = await once.push("Ann")
    await queue.drain()
    assert await queue.run_again(pushed.id, at=clock() + timedelta(hours=1))
    assert await queue.drain() == 0
    clock.move(3600)
    assert await queue.drain() == 1
    assert not await queue.forget(pushed.id)


async def test_drain_raises_the_store_s_error() -> None:
    class Down(MemoryStore):
        async def claim(self, *args: Any, **named: Any) -> Any:
            raise StoreUnavailable("no route to it")

    queue = Queue(Down())
    queue.handle("greet", greet)
    with pytest.raises(StoreUnavailable, match="no route to it"):
        await queue.drain()


async def in_the_loop(kind: Kind[str]) -> None:
    await kind.push("Ann")
    await kind.push("Bob")


async def in_a_thread(kind: Kind[str]) -> None:
    def push() -> None:
        kind.push_sync("Ann")
        kind.push_sync("Bob")

    await anyio.to_thread.run_sync(push)


@pytest.mark.parametrize("push", [in_the_loop, in_a_thread])
async def test_a_process_in_which_nothing_runs_is_told_once_what_is_missing(
    push: Callable[[Kind[str]], Awaitable[None]], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fastqueue.health, "HINT_AFTER", 0)
    await push(Queue("memory://").handle("greet", greet))
    await asyncio.sleep(0.01)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "no workers run in this process" in record.getMessage()
    assert "a process that only pushes says so by" in record.getMessage()


async def test_whoever_opens_the_queue_by_hand_or_runs_it_is_not_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fastqueue.health, "HINT_AFTER", 0)
    opened, run = Queue("memory://"), Queue("memory://")
    async with opened:
        await opened.handle("greet", greet).push("Ann")
    async with running(run):
        await asyncio.sleep(0)
        warn_that_nothing_runs(run)
    assert caplog.records == []


async def test_a_handler_is_still_a_function_for_a_unit_test() -> None:
    queue, seen = Queue("memory://"), list[str]()

    @queue.handle("greet")
    async def kind(name: str) -> None:
        seen.append(name)

    await kind("Ann")
    assert seen == ["Ann"]
    assert await queue.store.jobs(now=0) == []

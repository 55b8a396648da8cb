"""What is told about a run: to the store, to the observer, to `on_fail`, and to the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextvars import ContextVar

import pytest

from fastqueue import CarryVar, Kind, Permanent, Queue, Ran, constant
from fastqueue.clock import as_moment
from fastqueue.errors import CarriedTooLarge, StoreUnavailable
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import FakeClock
from tests.worker.stage import A_WHILE, Faulty, Observed, kept, lines, running, soon, taken

request_id: ContextVar[str] = ContextVar("request_id")


@pytest.fixture
def in_a_request() -> Iterator[None]:
    before = request_id.set("r-1")
    yield
    request_id.reset(before)


def facts(record: logging.LogRecord) -> dict[str, object]:
    """What a line says, as its record keeps it."""
    prefix = "fastqueue."
    return {name.removeprefix(prefix): value for name, value in vars(record).items() if name.startswith(prefix)}


async def test_the_store_knows_first_then_the_observer_then_on_fail(store: MemoryStore, clock: FakeClock) -> None:
    order: list[str] = []

    def observe(ran: Ran) -> None:
        stored = store._kept.failed
        order.append(f"observe {ran.attempt} {ran.outcome.value}, failed jobs: {len(stored)}")

    queue = Queue(store, clock=clock, observe=observe)

    @queue.handle("greet", attempts=2, backoff=constant(0))
    async def greet(name: str) -> None:
        raise ValueError(f"no {name}")

    @greet.on_fail
    async def gave_up(name: str, error: Exception) -> None:
        order.append(f"on_fail {name}: {error}, failed jobs: {len(await queue.failed())}")

    await greet.push("Ann")
    await queue.drain()
    assert order == [
        "observe 1 retried, failed jobs: 0",
        "observe 2 failed, failed jobs: 1",
        "on_fail Ann: no Ann, failed jobs: 1",
    ]


async def test_the_observer_is_told_what_ran_by_the_queue_s_clock(
    store: MemoryStore, clock: FakeClock, observed: Observed
) -> None:
    queue = Queue(store, clock=clock, observe=observed)

    @queue.handle("greet", queue="mail")
    async def greet(name: str) -> None:
        clock.move(7)

    pushed = await greet.push("Ann")
    clock.move(5)
    await queue.drain()
    assert observed.all == [
        Ran(
            kind="greet",
            attempt=1,
            outcome=observed.all[0].outcome,
            error=None,
            took=7,
            waited=5,
            id=pushed.id,
            queue="mail",
        )
    ]
    assert observed.outcomes == ["done"]


@pytest.mark.parametrize("error", [ZeroDivisionError("in the metrics"), SystemExit(1), asyncio.CancelledError("gone")])
async def test_an_error_of_the_observer_is_logged_and_nothing_else(
    store: MemoryStore, clock: FakeClock, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    def observe(ran: Ran) -> None:
        raise error

    queue = Queue(store, clock=clock, observe=observe)

    @queue.handle("greet")
    async def greet(name: str) -> None:
        return None

    await greet.push_many(["Ann", "Bob"])
    assert await queue.drain() == 2
    assert await kept(store) == []
    assert [line.partition(":")[0] for line in lines(caplog)] == ["observe failed"] * 2


@pytest.mark.parametrize("error", [ValueError("mail is down"), SystemExit(1), asyncio.CancelledError("gone")])
async def test_an_error_of_on_fail_is_logged_and_nothing_else(
    store: MemoryStore, clock: FakeClock, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    queue = Queue(store, clock=clock)

    @queue.handle("greet", attempts=1)
    async def greet(name: str) -> None:
        raise ValueError

    @greet.on_fail
    async def gave_up(name: str, cause: Exception) -> None:
        raise error

    await greet.push("Ann")
    assert await queue.drain() == 1
    assert [line.partition(":")[0] for line in lines(caplog)] == ["a job failed for good", "on_fail failed"]


async def test_on_fail_is_cut_at_its_kind_s_time_limit(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    queue = Queue(store)

    @queue.handle("greet", attempts=1, timeout=0.01)
    async def greet(name: str) -> None:
        raise ValueError

    @greet.on_fail
    async def gave_up(name: str, error: Exception) -> None:
        await asyncio.Event().wait()

    await greet.push("Ann")
    await queue.drain()
    assert lines(caplog)[-1].startswith("on_fail failed: kind=greet job=1 error=")


async def test_on_fail_may_be_a_plain_function_and_sees_what_the_job_carried(
    store: MemoryStore, clock: FakeClock, in_a_request: None
) -> None:
    queue, told = Queue(store, clock=clock, carry=[CarryVar(request_id)]), list[str]()

    @queue.handle("greet")
    async def greet(name: str) -> None:
        raise Permanent("no")

    @greet.on_fail
    def gave_up(name: str, error: Exception) -> None:
        told.append(f"{name} {error} {request_id.get()}")

    await greet.push("Ann")
    await queue.drain()
    assert told == ["Ann no r-1"]


async def test_on_fail_of_a_job_whose_worker_was_lost_sees_what_the_job_carried(
    store: MemoryStore, clock: FakeClock, in_a_request: None
) -> None:
    queue, told = Queue(store, clock=clock, carry=[CarryVar(request_id)]), list[str]()

    @queue.handle("greet", attempts=1)
    async def greet(name: str) -> None: ...

    @greet.on_fail
    async def gave_up(name: str, error: Exception) -> None:
        told.append(f"{type(error).__name__} {request_id.get()}")

    await greet.push("Ann")
    await store.claim(queue.clock.now(), token=1, limit=1, queues=None, kinds=["greet"])
    clock.move(3600)
    await queue.drain()
    assert told == ["WorkerLost r-1"]


@pytest.mark.parametrize("in_thread", [False, True], ids=["async def", "def"])
async def test_a_run_has_what_its_push_carried_and_nothing_else(
    store: MemoryStore, observed: Observed, in_thread: bool, in_a_request: None
) -> None:
    other: ContextVar[str] = ContextVar("other")
    queue, seen = Queue(store, carry=[CarryVar(request_id)], observe=observed), list[tuple[str, str]]()

    def look(name: str) -> None:
        seen.append((request_id.get("none"), other.get("none")))

    async def look_on_the_loop(name: str) -> None:
        look(name)

    greet: Kind[str] = queue.handle("greet", look) if in_thread else queue.handle("greet", look_on_the_loop)
    other.set("of the caller")
    await greet.push("in the request")
    request_id.set("r-2")
    await greet.push("in another", delay=0)
    async with running(queue):
        await observed.next()
        await observed.next()
    assert seen == [("r-1", "none"), ("r-2", "none")]


async def test_a_push_from_an_empty_context_carries_nothing(store: MemoryStore, clock: FakeClock) -> None:
    queue = Queue(store, clock=clock, carry=[CarryVar(request_id)])
    await queue.kind("greet", str).push("Ann")
    (job,) = await kept(store)
    assert job.carried_text is None


async def test_too_much_to_carry_is_refused_and_nothing_is_pushed(store: MemoryStore) -> None:
    queue = Queue(store, carry=[CarryVar(request_id)])
    before = request_id.set("x" * 5000)
    with pytest.raises(CarriedTooLarge, match="4096"):
        await queue.kind("greet", str).push("Ann")
    request_id.reset(before)
    assert await kept(store) == []


async def test_log_lines_say_the_kind_the_job_and_what_it_carried_last(
    store: MemoryStore, clock: FakeClock, caplog: pytest.LogCaptureFixture, in_a_request: None
) -> None:
    queue = Queue(store, clock=clock, carry=[CarryVar(request_id)])

    @queue.handle("greet", attempts=2, backoff=constant(60))
    async def greet(name: str) -> None:
        raise ValueError("no such person")

    pushed = await greet.push("a secret")
    await queue.drain()
    clock.move(60)
    await queue.drain()
    retried, failed = caplog.records
    assert (retried.levelno, failed.levelno) == (logging.WARNING, logging.ERROR)
    assert retried.getMessage() == (
        f"a job failed, and will run again: kind=greet job={pushed.id} attempt=1 "
        "at=2026-09-01T12:01:00.000+00:00 error='no such person' request_id=r-1"
    )
    assert failed.getMessage() == (
        f"a job failed for good: kind=greet job={pushed.id} attempts=2 error='no such person' request_id=r-1"
    )
    assert facts(failed) == {
        "kind": "greet",
        "job": pushed.id,
        "attempts": 2,
        "error": "no such person",
        "request_id": "r-1",
    }
    assert failed.exc_info is not None, "with its traceback"
    assert "a secret" not in caplog.text


async def test_a_success_is_not_logged(store: MemoryStore, clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fastqueue")
    queue = Queue(store, clock=clock)
    queue._hinted = True

    @queue.handle("greet")
    async def greet(name: str) -> None:
        return None

    await greet.push("Ann")
    await queue.drain()
    assert lines(caplog) == []


@pytest.mark.parametrize("error", [None, Permanent("no")], ids=["returns", "fails for good"])
async def test_a_run_that_ends_after_another_claim_took_its_job_is_lost_and_changes_nothing(
    store: MemoryStore,
    clock: FakeClock,
    observed: Observed,
    caplog: pytest.LogCaptureFixture,
    error: Exception | None,
) -> None:
    queue, told = Queue(store, clock=clock, observe=observed), list[str]()

    @queue.handle("greet")
    async def greet(name: str) -> None:
        clock.move(3600)
        assert len(await taken(store, "greet", as_moment("now", clock()))) == 1
        if error:
            raise error

    @greet.on_fail
    async def gave_up(name: str, error: Exception) -> None:
        told.append(name)

    await greet.push("Ann")
    await queue.drain()
    assert observed.outcomes == ["lost"]
    assert observed.all[0].error is None
    assert told == []
    (job,) = await kept(store)
    assert (job.attempts, job.state(as_moment("now", clock()))) == (2, "running")
    assert lines(caplog, logging.WARNING)[-1].startswith(
        "a run ended after its hold: another claim has its job: kind=greet job=1 attempt=1 outcome="
    )


async def test_a_run_that_ends_after_its_hold_is_kept_when_nobody_else_took_its_job(
    store: MemoryStore, clock: FakeClock, observed: Observed
) -> None:
    queue = Queue(store, clock=clock, observe=observed)

    @queue.handle("greet")
    async def greet(name: str) -> None:
        clock.move(3600)

    await greet.push("Ann")
    await queue.drain()
    assert observed.outcomes == ["done"]
    assert await kept(store) == []


async def test_a_store_that_hiccups_is_told_again(clock: FakeClock, observed: Observed) -> None:
    store = Faulty(settling=[StoreUnavailable("a hiccup"), StoreUnavailable("another")])
    queue = Queue(store, clock=clock, observe=observed)

    @queue.handle("greet")
    async def greet(name: str) -> None:
        return None

    await greet.push("Ann")
    await queue.drain()
    assert observed.outcomes == ["done"]
    assert await kept(store) == []


async def test_a_run_that_the_store_cannot_keep_is_logged_told_to_nobody_and_raised_by_drain(
    clock: FakeClock, observed: Observed, caplog: pytest.LogCaptureFixture
) -> None:
    store = Faulty(settling=[ZeroDivisionError("the store is broken")])
    queue, told = Queue(store, clock=clock, observe=observed), list[str]()

    @queue.handle("greet")
    async def greet(name: str) -> None:
        raise Permanent("no")

    @greet.on_fail
    async def gave_up(name: str, error: Exception) -> None:
        told.append(name)

    await greet.push("Ann")
    with pytest.raises(ZeroDivisionError, match="the store is broken"):
        await queue.drain()
    assert (observed.all, told) == ([], [])
    assert lines(caplog, logging.ERROR)[-1].startswith("could not tell the store how a run ended: kind=greet job=1")
    clock.move(3600)
    await queue.drain()
    assert told == ["Ann"], "it ran again after its hold"


async def test_an_on_fail_is_a_worker_s_work_and_comes_before_any_further_job(store: MemoryStore) -> None:
    queue, order, begun, release = Queue(store, workers=1), list[str](), asyncio.Event(), asyncio.Event()
    done = asyncio.Event()

    @queue.handle("greet")
    async def greet(name: str) -> None:
        order.append(name)
        if name == "bad":
            raise Permanent("no")
        done.set()

    @greet.on_fail
    async def gave_up(name: str, error: Exception) -> None:
        begun.set()
        await release.wait()
        order.append(f"gave up on {name}")

    await greet.push("bad")
    async with running(queue):
        await soon(begun.wait())
        await greet.push("good")
        await asyncio.sleep(A_WHILE)
        assert order == ["bad"]
        release.set()
        await soon(done.wait())
    assert order == ["bad", "gave up on bad", "good"]

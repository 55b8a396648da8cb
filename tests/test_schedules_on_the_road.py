"""Schedules on their way through a queue: each run pushed ahead, once over all instances, whatever the others do."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from fastqueue import Kind, Queue, Schedule, Unique, every
from fastqueue.clock import as_moment
from fastqueue.errors import OptionError, RegistrationError, Unsupported, ValueRefused
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import FakeClock
from fastqueue.worker.tick import Ticker

HALF_PAST = datetime(2026, 9, 1, 12, 0, 30, tzinfo=UTC)
ONE_PAST = datetime(2026, 9, 1, 12, 1, tzinfo=UTC)


class Instance:
    """One process of an app: a queue, its ticker, and what its handler was given."""

    def __init__(
        self, store: MemoryStore, clock: FakeClock, when: Schedule | None = None, *, unique: bool = False
    ) -> None:
        self.queue = Queue(store, clock=clock)
        self.seen: list[str] = []
        self.ran = asyncio.Event()
        self.ticker = Ticker(self.queue)

        @self.queue.handle("report", unique=unique or None)
        async def report(name: str) -> None:
            self.seen.append(name)
            self.ran.set()

        self.report: Kind[str] = report
        if when is not None:
            report.schedule(when, "daily")

    async def turn(self) -> int:
        """What a worker does each time it looks: push what is to be pushed, then run what is due."""
        await self.ticker.push_due()
        return await self.queue.drain()


@dataclass
class Answers:
    """A schedule that answers what a test says; an error is raised."""

    answer: datetime | Exception | None
    asked: list[datetime] = field(default_factory=list)

    def next(self, after: datetime, /) -> datetime | None:
        self.asked.append(after)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(HALF_PAST)


def messages(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == level]


async def test_a_run_is_pushed_ahead_of_its_time_and_nothing_runs_before_it(
    store: MemoryStore, clock: FakeClock
) -> None:
    one = Instance(store, clock, every(60))

    assert await one.turn() == 0
    (ahead,) = await store.jobs(now=0)
    assert (ahead.run_at, ahead.schedule, ahead.carried_text) == (ONE_PAST, "report", None)

    clock.move(29.999)
    assert await one.turn() == 0
    clock.move(0.001)
    assert await one.turn() == 1
    clock.move(60)
    assert await one.turn() == 1
    assert one.seen == ["daily", "daily"]


async def test_five_missed_minutes_are_one_run(store: MemoryStore, clock: FakeClock) -> None:
    await Instance(store, clock, every(60)).turn()

    clock.move(timedelta(minutes=5))
    after = Instance(store, clock, every(60))
    await after.turn()
    assert after.seen == ["daily"]
    assert await after.turn() == 0

    clock.move(30)
    await after.turn()
    assert after.seen == ["daily", "daily"]


async def test_three_instances_run_each_slot_once(store: MemoryStore, clock: FakeClock) -> None:
    instances = [Instance(store, clock, every(60)) for _ in range(3)]
    for _ in range(4):
        for instance in instances:
            await instance.turn()
        clock.move(60)
    assert sum(len(instance.seen) for instance in instances) == 3


async def test_an_instance_asks_the_store_once_for_each_run(store: MemoryStore, clock: FakeClock) -> None:
    schedule = Answers(ONE_PAST)
    one = Instance(store, clock, schedule)
    for _ in range(3):
        await one.turn()
    assert schedule.asked == [HALF_PAST]


async def test_a_new_schedule_first_runs_at_its_next_time(store: MemoryStore, clock: FakeClock) -> None:
    one = Instance(store, clock)
    clock.move(timedelta(hours=3))
    one.report.schedule(every(60), "late")
    assert await one.turn() == 0
    clock.move(30)
    await one.turn()
    assert one.seen == ["late"]


async def test_a_removed_schedule_s_last_run_still_runs(store: MemoryStore, clock: FakeClock) -> None:
    await Instance(store, clock, every(60)).turn()
    clock.move(90)
    without = Instance(store, clock)
    assert await without.turn() == 1
    assert await store.jobs(now=0) == []


async def test_draining_pushes_no_runs(store: MemoryStore, clock: FakeClock) -> None:
    one = Instance(store, clock, every(60))
    assert await one.queue.drain() == 0
    assert await store.jobs(now=0) == []


def test_a_second_schedule_needs_a_name(store: MemoryStore, clock: FakeClock) -> None:
    one = Instance(store, clock, every(60))
    with pytest.raises(RegistrationError, match="'report' already; give this one a name="):
        one.report.schedule(every(3600), "hourly")
    one.report.schedule(every(3600), "hourly", name="hourly report")
    assert [scheduled.name for _, scheduled in one.queue.schedules] == ["report", "hourly report"]


def test_two_kinds_schedules_cannot_share_a_name(store: MemoryStore, clock: FakeClock) -> None:
    one = Instance(store, clock, every(60))

    @one.queue.handle("digest")
    async def digest(name: str) -> None: ...

    with pytest.raises(RegistrationError, match="there is a schedule 'report' already"):
        digest.schedule(every(60), "x", name="report")
    assert digest.schedules == []


async def test_a_schedule_after_the_queue_has_run_is_refused(store: MemoryStore, clock: FakeClock) -> None:
    one = Instance(store, clock)
    running = asyncio.create_task(one.queue.run())
    await one.report.push("x")
    await asyncio.wait_for(one.ran.wait(), 5)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    with pytest.raises(RegistrationError, match="schedule comes too late"):
        one.report.schedule(every(60), "x")


def test_a_store_without_schedules_refuses_one(store: MemoryStore, clock: FakeClock) -> None:
    store.schedules = None
    with pytest.raises(Unsupported, match=r"'report': the memory store does not keep schedules"):
        Instance(store, clock, every(60))


def test_a_schedule_s_value_and_options_are_checked_when_it_is_made(store: MemoryStore, clock: FakeClock) -> None:
    one = Instance(store, clock)
    with pytest.raises(ValueRefused):
        one.report.schedule(every(60), 7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(OptionError, match="is no schedule"):
        one.report.schedule("daily", "x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(OptionError, match="missed='all'"):
        one.report.schedule(every(60), "x", missed="all")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert one.queue.schedules == []


async def test_a_unique_kind_s_run_is_the_job_that_waits(store: MemoryStore, clock: FakeClock) -> None:
    one = Instance(store, clock, every(60), unique=True)
    waiting = await one.report.push("daily", at=ONE_PAST)

    await one.turn()
    (job,) = await store.jobs(now=0)
    assert (job.id, job.run_at, job.schedule) == (waiting.id, ONE_PAST, None)
    assert store.schedules is not None
    assert await store.schedules.recorded() == {"report": as_moment("at", ONE_PAST)}

    clock.move(30)
    await one.turn()
    assert one.seen == ["daily"]


async def test_a_push_while_a_unique_kind_s_run_waits_adds_none(store: MemoryStore, clock: FakeClock) -> None:
    one = Instance(store, clock, every(60), unique=True)
    await one.turn()
    assert not (await one.report.push("daily")).new
    assert await one.turn() == 0
    clock.move(30)
    await one.turn()
    assert one.seen == ["daily"]


async def test_a_run_never_moves_the_waiting_job_not_even_with_latest(store: MemoryStore, clock: FakeClock) -> None:
    queue = Queue(store, clock=clock)

    @queue.handle("report", unique=Unique(latest=True))
    async def report(name: str) -> None: ...

    report.schedule(every(60), "daily")
    later = ONE_PAST + timedelta(hours=1)
    await report.push("daily", at=later)
    await Ticker(queue).push_due()
    (job,) = await store.jobs(now=0)
    assert job.run_at == later


@pytest.mark.parametrize("answer", [RuntimeError("no calendar"), HALF_PAST, HALF_PAST - timedelta(hours=1)])
async def test_a_broken_schedule_never_stops_the_others(
    store: MemoryStore, clock: FakeClock, caplog: pytest.LogCaptureFixture, answer: datetime | Exception
) -> None:
    one = Instance(store, clock, Answers(answer))
    one.report.schedule(every(60), "sound", name="sound")
    await one.turn()
    clock.move(30)
    await one.turn()
    assert one.seen == ["sound"]
    errors = messages(caplog, logging.ERROR)
    assert len(errors) == 2
    assert all("could not be pushed: kind=report schedule=report" in error for error in errors)


@pytest.mark.parametrize("answer", [RuntimeError("no calendar"), None])
async def test_a_schedule_that_has_ended_or_broken_has_the_worker_look_at_no_moment_gone_by(
    store: MemoryStore, clock: FakeClock, answer: Exception | None
) -> None:
    schedule = Answers(ONE_PAST)
    one = Instance(store, clock, schedule)
    assert await one.ticker.push_due() == as_moment("at", ONE_PAST)
    schedule.answer = answer
    clock.move(60)
    assert await one.ticker.push_due() is None


async def test_a_schedule_that_breaks_after_its_run_was_claimed_does_not_keep_the_job(
    store: MemoryStore, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    one = Instance(store, clock)
    schedule = Answers(ONE_PAST)
    one.report.schedule(schedule, "daily", missed="skip")
    await one.ticker.push_due()
    schedule.answer = RuntimeError("no calendar")
    clock.move(60)
    await one.queue.drain()
    assert one.seen == ["daily"]
    assert "no calendar" in messages(caplog, logging.ERROR)[0]


async def test_a_schedule_that_never_comes_round_pushes_nothing_and_is_asked_again(
    store: MemoryStore, clock: FakeClock
) -> None:
    schedule = Answers(None)
    one = Instance(store, clock, schedule)
    await one.turn()
    await one.turn()
    assert (len(schedule.asked), await store.jobs(now=0)) == (2, [])


async def test_a_schedule_made_more_frequent_that_stays_silent_is_warned_of_once(
    store: MemoryStore, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    await Instance(store, clock, every(timedelta(days=365))).turn()
    changed = Instance(store, clock, every(60))
    for _ in range(3):
        await changed.turn()
        clock.move(60)
    (warning,) = messages(caplog, logging.WARNING)
    assert "made more frequent" in warning
    assert "schedule=report" in warning
    assert changed.seen == []


async def test_an_instance_that_is_merely_second_warns_of_nothing(
    store: MemoryStore, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        await Instance(store, clock, every(60)).turn()
    assert messages(caplog, logging.WARNING) == []


async def test_missed_skip_drops_a_run_whose_next_is_due_already_and_says_so(
    store: MemoryStore, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fastqueue")
    one = Instance(store, clock)
    one.report.schedule(every(60), "daily", missed="skip")
    await one.ticker.push_due()

    clock.move(90)
    await one.turn()
    assert one.seen == []
    (said,) = [message for message in messages(caplog, logging.INFO) if "skipped" in message]
    assert "kind=report" in said
    assert "schedule=report" in said
    (ahead,) = await store.jobs(now=0)
    assert ahead.run_at == ONE_PAST + timedelta(minutes=2)


async def test_missed_skip_still_runs_what_comes_late_but_before_the_next(store: MemoryStore, clock: FakeClock) -> None:
    one = Instance(store, clock)
    one.report.schedule(every(60), "daily", missed="skip")
    await one.turn()
    clock.move(89.999)
    await one.turn()
    assert one.seen == ["daily"]


async def test_missed_skip_drops_no_job_that_was_pushed_by_hand(store: MemoryStore, clock: FakeClock) -> None:
    one = Instance(store, clock)
    one.report.schedule(every(60), "daily", missed="skip")
    await one.report.push("by hand")
    clock.move(timedelta(hours=1))
    await one.turn()
    assert one.seen == ["by hand"]


async def test_a_running_queue_pushes_its_schedules_by_itself(clock: FakeClock) -> None:
    store = MemoryStore()
    one = Instance(store, clock, every(60))
    one.queue.poll = 0.01
    # It is due at once, and by its end the worker has looked once and pushed what is ahead.
    await one.report.push("first")
    running = asyncio.create_task(one.queue.run())
    await asyncio.wait_for(one.ran.wait(), 5)
    assert [job.run_at for job in await store.jobs(now=as_moment("now", HALF_PAST), state="delayed")] == [ONE_PAST]

    one.ran.clear()
    clock.move(30)
    await asyncio.wait_for(one.ran.wait(), 5)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert one.seen == ["first", "daily"]

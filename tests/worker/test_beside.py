"""What goes on beside the claimer."""

from __future__ import annotations

import logging
import time
import zoneinfo
from collections.abc import Callable, Generator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from fastqueue import Permanent, Queue, Schedule, cron, every
from fastqueue.job import Moment
from fastqueue.store import StoreTime
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import FakeClock
from fastqueue.worker import beside
from tests.worker.stage import kept, running, taken, until


async def test_jobs_that_failed_more_than_30_days_ago_are_forgotten_and_younger_ones_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(beside, "PRUNE_FIRST_AFTER", 0.0)
    clock, store = FakeClock(), MemoryStore()

    def queue() -> Queue:
        made = Queue(store, clock=clock)

        @made.handle("mail")
        async def mail(number: int) -> None:
            raise Permanent(f"no mailbox {number}")

        return made

    first = queue()
    await first.kinds["mail"].push(1)
    await first.drain()
    clock.move(timedelta(days=30))
    await first.kinds["mail"].push(2)
    await first.drain()
    assert [job.error for job in await first.failed()] == ["no mailbox 2", "no mailbox 1"]
    clock.move(timedelta(days=10))

    async def one_is_left() -> bool:
        return len(await kept(store)) == 1

    async with running(queue()):
        await until(one_is_left)
    assert [job.payload for job in await kept(store)] == ["2"]


# the store's clock


class TenMinutesBehind(StoreTime):
    async def now(self) -> Moment:
        return time.time_ns() // 1_000_000 - 600_000


async def test_the_first_push_and_the_first_claim_go_by_the_store_s_clock(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    store.time = TenMinutesBehind()
    first, second = Queue(store), Queue(store)
    for queue in first, second:

        @queue.handle("greet")
        async def greet(name: str) -> None: ...

    now = await store.time.now()
    await first.kinds["greet"].push("Ann")
    (job,) = await kept(store)
    assert now <= job.run_ms < now + 60_000
    # Another instance holds it by the store's clock: one that went by its own would find that hold long over.
    assert await taken(store, "greet", job.run_ms)
    assert await second.drain() == 0
    assert caplog.messages == []


# the zone data of other instances


@pytest.fixture
def use_zone_data(tmp_path: Path) -> Generator[Callable[[str], None]]:
    """Have this process find zone data of a version, as another machine would."""

    def use(version: str) -> None:
        folder = tmp_path / version
        folder.mkdir(exist_ok=True)
        (folder / "tzdata.zi").write_text(f"# version {version}\n")
        zoneinfo.reset_tzpath([folder])

    yield use
    zoneinfo.reset_tzpath()


def instance(store: MemoryStore, clock: FakeClock, when: Schedule) -> Queue:
    queue = Queue(store, clock=clock)

    @queue.handle("report")
    async def report(name: str) -> None: ...

    report.schedule(when, "daily")
    return queue


def said_of_zones(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "zone data" in record.getMessage()]


async def test_instances_with_other_zone_data_warn_each_other_once_and_health_tells(
    use_zone_data: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(beside, "ZONES_TOLD_EVERY", 0.01)
    clock, store = FakeClock(), MemoryStore()
    nine = cron("0 9 * * *", tz="America/Vancouver")
    use_zone_data("2025b")
    old = instance(store, clock, nine)

    async def both_know() -> bool:
        clock.move(0.001)
        return all([(await queue.health()).zone_data_elsewhere for queue in (old, new)])

    async with running(old):
        await until(partial(told, store, "2025b"))
        clock.move(1)
        use_zone_data("2026f")
        new = instance(store, clock, nine)
        async with running(new):
            await until(both_know)
            assert (await old.health()).zone_data_elsewhere == ["2026f"]
            assert (await new.health()).zone_data_elsewhere == ["2025b"]
            assert (await new.health()).ready
            before = store._kept.zone_data["2025b"]
            clock.move(0.001)
            await until(partial(told, store, "2025b", after=before))

    assert sorted(text.partition("tzdata: ")[2] for text in said_of_zones(caplog)) == [
        "here=2025b elsewhere=2026f",
        "here=2026f elsewhere=2025b",
    ]
    # They still push each run once where their zones agree, as they do here.
    assert len(await kept(store)) == 1


async def told(store: MemoryStore, version: str, *, after: int = 0) -> bool:
    """Whether an instance with this zone data has said so after a moment."""
    return store._kept.zone_data.get(version, -1) > after


async def test_an_instance_that_was_stopped_before_this_one_began_is_not_warned_of(
    use_zone_data: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    clock, store = FakeClock(), MemoryStore()
    for version in ("2025b", "2026f"):
        use_zone_data(version)
        async with running(instance(store, clock, cron("0 9 * * *", tz="America/Vancouver"))):
            await until(partial(told, store, version))
        clock.move(1)
    assert said_of_zones(caplog) == []


@pytest.mark.parametrize("when", [every(60), cron("0 9 * * *"), cron("0 9 * * *", tz="Etc/UTC")])
async def test_instances_whose_schedules_need_no_zone_data_tell_nothing(when: Schedule) -> None:
    store = MemoryStore()
    queue = instance(store, FakeClock(), when)
    ran: list[str] = []

    @queue.handle("look")
    async def look(name: str) -> None:
        ran.append(name)

    async with running(queue):
        await look.push("x")

        async def looked() -> bool:
            return bool(ran)

        await until(looked)
    assert store._kept.zone_data == {}


async def test_a_store_that_cannot_tell_for_now_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(beside, "ZONES_TOLD_EVERY", 0.001)
    caplog.set_level(logging.DEBUG, "fastqueue")
    store = MemoryStore()
    assert store.schedules
    tell = store.schedules.tell_zone_data
    failures = [ConnectionError("no line")]

    async def failing(version: str, *, now: int) -> dict[str, int]:
        if failures:
            raise failures.pop()
        return await tell(version, now=now)

    monkeypatch.setattr(store.schedules, "tell_zone_data", failing)
    async with running(instance(store, FakeClock(), cron("0 9 * * *", tz="America/Vancouver"))):

        async def has_told() -> bool:
            return bool(store._kept.zone_data)

        await until(has_told)
    assert "could not be compared" in said_of_zones(caplog)[0]

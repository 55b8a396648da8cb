import asyncio
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from fastqueue import Queue, cron
from fastqueue.testing import FakeClock
from tests.worker.stage import running, soon

BERLIN = ZoneInfo("Europe/Berlin")


class Instance:
    """One of the processes that the app runs in."""

    def __init__(self, url: str, clock: FakeClock, written: asyncio.Queue[str]) -> None:
        self.queue = Queue(url, clock=clock, poll=0.05)

        @self.queue.handle("report")
        async def report(region: str) -> None:
            written.put_nowait(f"{clock().astimezone(BERLIN):%d %b %H:%M %Z}")

        @self.queue.handle("note")
        async def note(text: str) -> None:
            written.put_nowait(text)

        report.schedule(cron("30 2 * * *", tz="Europe/Berlin"), "eu")
        self.note = note


async def test_on_the_night_that_has_an_hour_twice_two_instances_write_one_report(tmp_path: Path) -> None:
    clock = FakeClock(datetime(2026, 10, 25, 0, 0, tzinfo=UTC))  # two o'clock in Berlin, summer time
    written = asyncio.Queue[str]()
    url = f"sqlite:///{tmp_path}/shop.db"
    one, two = Instance(url, clock, written), Instance(url, clock, written)

    async with one.queue, two.queue, running(one.queue), running(two.queue):
        await one.note.push("the night begins")
        assert await soon(written.get()) == "the night begins"

        clock.set(datetime(2026, 10, 25, 0, 30, tzinfo=UTC))
        assert await soon(written.get()) == "25 Oct 02:30 CEST"

        again = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)  # half past two, once more
        await one.note.push("no report", at=again)
        clock.set(again)
        assert await soon(written.get()) == "no report"

        clock.set(datetime(2026, 10, 26, 1, 30, tzinfo=UTC))
        assert await soon(written.get()) == "26 Oct 02:30 CET"

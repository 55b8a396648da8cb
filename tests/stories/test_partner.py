import asyncio
from collections import Counter
from pathlib import Path

from fastqueue import Kind, Queue, Throttle
from fastqueue.testing import FakeClock
from tests.worker.stage import running, soon


def instance(url: str, clock: FakeClock, calls: asyncio.Queue[float]) -> tuple[Queue, Kind[int]]:
    """One of the processes that the app runs in."""
    queue = Queue(url, clock=clock, poll=0.05)

    @queue.handle("tell-the-partner", rate=Throttle(10, window=60), attempts=1)
    async def tell_the_partner(order: int) -> None:
        calls.put_nowait(clock().timestamp())

    return queue, tell_the_partner


async def test_a_partner_who_takes_ten_calls_a_minute_gets_no_more_from_two_instances(tmp_path: Path) -> None:
    clock, calls = FakeClock(), asyncio.Queue[float]()
    url = f"sqlite:///{tmp_path}/shop.db"
    (one, tell_the_partner), (two, _) = instance(url, clock, calls), instance(url, clock, calls)
    minutes = Counter[float]()

    async with one, two, running(one), running(two):
        await tell_the_partner.push_many(range(25))
        for expected in (10, 10, 5):
            minutes.update([await soon(calls.get()) for _ in range(expected)])
            clock.move(60)
        assert await one.failed() == []

    assert sorted(minutes.values()) == [5, 10, 10]

"""An instance of an app with one schedule, at a clock that the test moves.

Run as `python -m tests.processes.instance URL`. It is told the minute it is, pushes what its schedule needs then, and
says the minute back.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from datetime import timedelta

from fastqueue import Queue, every
from fastqueue.testing import FakeClock
from fastqueue.worker.tick import Ticker


async def main(url: str) -> None:
    clock = FakeClock()
    start = clock()
    queue = Queue(url, clock=clock)

    @queue.handle("report")
    async def report(name: str) -> None: ...

    report.schedule(every(60), "each minute")
    await queue.ready()
    ticker = Ticker(queue)
    print("ready", flush=True)
    while minute := await asyncio.to_thread(sys.stdin.readline):
        clock.set(start + timedelta(minutes=int(minute), seconds=-30))
        await ticker.push_due()
        print(minute, end="", flush=True)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(main(sys.argv[1]))

"""A process of the app in the scenarios: it runs jobs, or pushes them, until SIGTERM.

Run as `python -m tests.faults.worker works|pushes URL LEDGER [SECONDS [BYTES]]`: by how much its clock is wrong, and
how much memory each run takes for good.
SIGUSR1 sets its clock forward by an hour, SIGUSR2 back.
"""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import sys
import time
from contextlib import suppress
from itertools import count
from pathlib import Path

from fastqueue import Defaults, Queue, constant
from tests.faults.ledger import Ledger

HOLD = 2.0
"""Seconds that a claim lasts, unless it is renewed."""

AT_A_TIME, PAUSE = 5, 0.01
"""How many jobs are pushed at a time, and the seconds between two pushes."""


def queue_on(url: str, ledger: Ledger, leak: int = 0) -> Queue:
    """A queue whose holds are short, and whose one kind keeps the ledger."""
    short = Defaults(attempts=20, backoff=constant(0.2), margin=HOLD / 2, hold_at_most=HOLD / 2)
    queue = Queue(url, workers=8, poll=0.5, grace=2, defaults=short)

    leaked: list[bytes] = []

    @queue.handle("work")
    async def work(number: int) -> None:
        ledger.note("start", number)
        leaked.append(b"x" * leak)
        await asyncio.sleep(random.choice([0, 0.002, 0.02]))
        ledger.note("end", number)

    return queue


async def tell_of_stalls(ledger: Ledger) -> None:
    """Note, in milliseconds, when this process had no turn for so long that it may have lost its holds."""
    while True:
        before = time.monotonic()
        await asyncio.sleep(0.05)
        if (late := time.monotonic() - before) > HOLD / 4:
            ledger.note("stalled", int(late * 1000))


async def push(queue: Queue, ledger: Ledger) -> None:
    """Push jobs without end; when some are refused, the next are pushed all the same."""
    for first in count(1, AT_A_TIME):
        numbers = range(first, first + AT_A_TIME)
        word = "pushed"
        try:
            async with asyncio.timeout(10):
                await queue.kinds["work"].push_many(numbers)
        except Exception as error:
            word = "refused"
            logging.debug("a push was refused", exc_info=error)
        for number in numbers:
            ledger.note(word, number)
        await asyncio.sleep(PAUSE)


async def main(does: str, url: str, path: Path, wrong: float, leak: int) -> None:
    read = time.time_ns

    def step(seconds: float) -> None:
        nonlocal wrong
        wrong += seconds

    time.time_ns = lambda: read() + int(wrong * 1e9)
    ledger = Ledger(path)
    queue = queue_on(url, ledger, leak)
    task = asyncio.create_task(push(queue, ledger) if does == "pushes" else queue.run())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, step, 3600)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, step, -3600)
    stalls = asyncio.create_task(tell_of_stalls(ledger))
    ledger.note("ready", 0)
    with suppress(asyncio.CancelledError):
        await task
    stalls.cancel()
    await queue.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.CRITICAL)
    given = [*sys.argv[1:], "0", "0"]
    asyncio.run(main(given[0], given[1], Path(given[2]), float(given[3]), int(given[4])))

"""A worker of `test_processes`: one process that runs the jobs of a store until it is told to end.

Run as `python -m tests.worker.process DOES STORE JOURNAL ATTEMPTS`; it appends what happens to the journal's lines.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from fastqueue import Defaults, Kind, Queue, Run, constant

HOLD = 2.0
"""Seconds that a claim of these jobs lasts, unless it is renewed."""


def queue_on(store: str, *, attempts: int) -> Queue:
    """A queue whose holds are short, and whose jobs are due again at once."""
    short = Defaults(attempts=attempts, backoff=constant(0), timeout=60, margin=HOLD / 2, hold_at_most=HOLD / 2)
    return Queue(store, poll=0.1, grace=0.1, defaults=short)


def greet_on(queue: Queue, does: str, journal: Path) -> Kind[str]:
    """The kind whose handler works, waits for ever, or takes its process down."""

    def note(what: str, run: Run) -> None:
        with journal.open("a") as lines:
            lines.write(f"{what} {run.attempt}\n")

    @queue.handle("greet")
    async def greet(name: str, run: Run) -> None:
        note("start", run)
        if does == "exit":
            os._exit(3)
        if does == "wait":
            await asyncio.Event().wait()
        note("done", run)

    return greet


async def main(does: str, store: str, journal: Path, attempts: int) -> None:
    """Run until SIGTERM, as a process manager ends its processes."""
    queue = queue_on(store, attempts=attempts)
    greet_on(queue, does, journal)
    run = asyncio.create_task(queue.run())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, run.cancel)
    with suppress(asyncio.CancelledError):
        await run
    await queue.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])))

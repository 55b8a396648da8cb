"""`fastqueue work`: a process that only runs jobs."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import Annotated

import typer

from fastqueue.cli._app import App, fail, finished, load_queue
from fastqueue.codec import check_name
from fastqueue.errors import OptionError, StoreUnavailable
from fastqueue.queue import Queue

__all__ = ["work"]

_LOOK = 0.1
"""Seconds from one look for the end of the work to the next."""

_QUIET_LOOKS = 2
"""A claim on its way hides its jobs from one look, not from the next."""


def work(
    app: App = None,
    queues: Annotated[
        str | None, typer.Option("--queue", metavar="A,B", help="Only these queues, the first before the second.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", min=1, help="Jobs at once; the queue's own number by default.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Run what is due now, one by one, then end.")] = False,
    stop_when_empty: Annotated[bool, typer.Option("--stop-when-empty", help="End when nothing is due.")] = False,
) -> None:
    """Run jobs until SIGTERM or Ctrl-C; running jobs are given time to end. A second signal stops at once."""
    if once and stop_when_empty:
        fail(2, "--once and --stop-when-empty: give one of them")
    queue = load_queue(app)
    queue.workers = concurrency or queue.workers
    try:
        if queues is not None:
            queue.queues = [check_name("queue", name.strip()) for name in queues.split(",")]
    except OptionError as error:
        fail(2, f"--queue {queues}: {error}")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    finished(_until_told(queue, once=once, stop_when_empty=stop_when_empty))


async def _until_told(queue: Queue, *, once: bool, stop_when_empty: bool) -> None:
    task = asyncio.create_task(_drained(queue) if once else _worked(queue, stop_when_empty), name="fastqueue-command")
    _stop_by_signals(task)
    try:
        with suppress(asyncio.CancelledError):
            await task
    finally:
        await queue.close()


async def _drained(queue: Queue) -> None:
    await queue.drain()


async def _worked(queue: Queue, stop_when_empty: bool) -> None:
    if not stop_when_empty:
        return await queue.run()
    await queue.ready()
    running = asyncio.create_task(queue.run(), name="fastqueue-command-run")
    try:
        quiet = 0
        while quiet < _QUIET_LOOKS and not running.done():
            await asyncio.sleep(_LOOK)
            quiet = quiet + 1 if await _is_empty(queue) else 0
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    return None


async def _is_empty(queue: Queue) -> bool:
    """Whether nothing runs here and nothing that this process could run is due.

    Raises:
        StoreUnavailable: the worker's last claim was not answered.
    """
    worker = queue.worker
    if worker is None or (worker.claimed_at is None and worker.store_answers):
        return False
    if not worker.store_answers:
        raise StoreUnavailable("the store does not answer")
    lanes, now = await queue.store.lanes(), queue.clock.now()
    handled = {name for name, kind in queue.kinds.items() if kind.handler is not None}
    due = any(
        lane.head <= now and lane.kind in handled and (queue.queues is None or lane.queue in queue.queues)
        for lane in lanes
    )
    return not (due or worker.running or worker.settler.unsettled)


def _stop_by_signals(task: asyncio.Task[None]) -> None:
    """The first signal cancels the task, which drains; the second ends the process, whatever it does."""
    loop = asyncio.get_running_loop()
    told = False

    def stop(number: int, _: FrameType | None) -> None:
        nonlocal told
        if told:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(128 + number)
        told = True
        loop.call_soon_threadsafe(task.cancel)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)

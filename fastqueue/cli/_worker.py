"""This process works: until it is told to stop, or until nothing is due."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from fastqueue.codec import error_text
from fastqueue.errors import StoreUnavailable
from fastqueue.queue import Queue

__all__ = ["exit_at_once", "line_to_parent", "work_until_told"]

log = logging.getLogger("fastqueue")

_LOOK = 0.1
"""Seconds from one look for the end of the work to the next."""

_QUIET_LOOKS = 2
"""A claim on its way hides its jobs from one look, not from the next."""


def line_to_parent() -> int:
    """The line that a parent gave this process as its standard input; neither jobs nor what they start can read it."""
    line = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return line


async def work_until_told(queue: Queue, *, once: bool, stop_when_empty: bool, parent: int | None = None) -> None:
    """Run jobs until a signal, or the parent's end, and close the store.

    The first signal drains. A second one ends the process whatever it does, but for a child: there the parent sees to
    that, and a supervisor that signals every process of a group would else cut the drain short.

    Args:
        queue: The queue.
        once: Run what is due, one by one, and return.
        stop_when_empty: Return when nothing is due.
        parent: The line to the parent, of a child; a byte on it says that this process works.
    """
    task = asyncio.create_task(
        _drained(queue) if once else _worked(queue, stop_when_empty, parent), name="fastqueue-command"
    )
    stop = _stop_of(task)
    _stop_by_signals(stop, at_once=parent is None)
    if parent is not None:
        _stop_with_parent(parent, stop)
    try:
        with suppress(asyncio.CancelledError):
            await task
    finally:
        await queue.close()
    if any(other.get_name().startswith("fastqueue-job-") for other in asyncio.all_tasks()):
        # A handler that hears no cancellation: the loop would wait for it for ever. The queue has named it.
        exit_at_once(0)


def exit_at_once(status: int) -> NoReturn:
    """End the process, whatever else it does, but for what has been printed."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:  # whatever they say: a signal that comes within a write cannot flush it
        os._exit(status)


async def _drained(queue: Queue) -> None:
    await queue.drain()


async def _worked(queue: Queue, stop_when_empty: bool, parent: int | None) -> None:
    try:
        await queue.ready()
    except StoreUnavailable as error:
        if stop_when_empty:
            raise
        log.error("the store is tried again: %s", error_text(error))
    if parent is not None:
        with suppress(OSError):  # it is gone, and this process hears of that
            os.write(parent, b"\n")
    if not stop_when_empty:
        return await queue.run()
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


def _stop_of(task: asyncio.Task[None]) -> Callable[[], None]:
    """A function that cancels a task, once however often it is called, from any thread or signal handler."""
    loop = asyncio.get_running_loop()
    told = False

    def cancel() -> None:
        nonlocal told
        if not told:
            told = True
            task.cancel()

    def stop() -> None:
        with suppress(RuntimeError):  # the loop has closed: the process ends by itself
            loop.call_soon_threadsafe(cancel)

    return stop


def _stop_by_signals(stop: Callable[[], None], *, at_once: bool) -> None:
    told = False

    def hear(number: int, _: FrameType | None) -> None:
        nonlocal told
        if told and at_once:
            exit_at_once(128 + number)
        told = True
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, hear)


def _stop_with_parent(parent: int, stop: Callable[[], None]) -> None:
    def wait() -> None:
        with suppress(OSError):
            os.read(parent, 1)
        stop()

    threading.Thread(target=wait, name="fastqueue-parent", daemon=True).start()

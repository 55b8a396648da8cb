"""What goes on beside the claimer: listening for notices, following the store's clock, comparing, and pruning."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from fastqueue._zones import zone_data_version
from fastqueue.clock import as_datetime
from fastqueue.schedule import needs_zone_data
from fastqueue.worker.run import extra, line

if TYPE_CHECKING:
    from fastqueue.queue import Queue

__all__ = ["what_goes_on_beside"]

log = logging.getLogger("fastqueue")

ASKED_EVERY = 60.0
"""Seconds between two looks at the store's clock."""

PRUNE_FIRST_AFTER, PRUNE_EVERY = 60.0, 3600.0
"""Seconds: not at the start, when an app has other things to do."""

ZONES_TOLD_EVERY = 3600.0
"""Seconds. Instances that overlap for a moment, as they do in a deploy, mostly do not notice each other's zone data."""

FAILED_KEPT_MS = 30 * 86_400_000


def what_goes_on_beside(
    queue: Queue, wake: Callable[[], None], zone_data_elsewhere: set[str]
) -> dict[str, Coroutine[Any, Any, None]]:
    """All of it, each under the name of its task, to go on until the queue stops."""
    return {
        "listen": listen(queue, wake),
        "clock": follow_clock(queue),
        "zone-data": compare_zone_data(queue, zone_data_elsewhere),
        "prune": prune(queue),
    }


async def listen(queue: Queue, wake: Callable[[], None]) -> None:
    """Wake for each notice of another process; the store reconnects by itself, and this begins again if it gives up."""
    while queue.store.wakes is not None:
        try:
            await queue.ready()
            await queue.store.wakes.listen(wake)
        except Exception as error:
            log.debug("listening failed, trying again", exc_info=error)
        await asyncio.sleep(queue.poll)


async def follow_clock(queue: Queue) -> None:
    """Measure again and again how far this machine's clock is from the store's, which every moment goes by."""
    if queue.store.time is None or queue.clock.source is not None:
        return
    warned = False
    while True:
        try:
            await queue.ready()
            await queue.clock.follow(queue.store.time.now)
            if abs(queue.clock.wrong_ms) > 1000 and not warned:
                warned = True
                log.warning(
                    "this machine's clock is %+.1f s from the store's (%s there); the store's is used",
                    queue.clock.wrong_ms / 1000,
                    as_datetime(queue.clock.now()).isoformat(timespec="seconds"),
                )
        except Exception as error:
            log.debug("the store's clock could not be asked", exc_info=error)
        await asyncio.sleep(ASKED_EVERY)


async def compare_zone_data(queue: Queue, elsewhere: set[str]) -> None:
    """Tell the other instances which zone data is used here, and keep in `elsewhere` what else is at work."""
    schedules, ours, began = queue.store.schedules, zone_data_version(), queue.clock.now()
    if schedules is None or not any(needs_zone_data(scheduled.when) for _, scheduled in queue.schedules):
        return
    while True:
        try:
            await queue.ready()
            now = queue.clock.now()
            told = await schedules.tell_zone_data(ours, now=now)
            since = max(began, now - int(ZONES_TOLD_EVERY * 2000))
            others = {version for version, at in told.items() if version != ours and at > since}
            for version in sorted(others - elsewhere):
                facts: dict[str, object] = {"here": ours, "elsewhere": version}
                log.warning(
                    "another instance has other time zone data, so a schedule may run at its times and at ours: "
                    "give both the same, the system's own or the package tzdata: %s",
                    line(facts),
                    extra=extra(facts),
                )
            elsewhere.clear()
            elsewhere.update(others)
        except Exception as error:
            log.debug("zone data could not be compared, trying again in an hour", exc_info=error)
        await asyncio.sleep(ZONES_TOLD_EVERY)


async def prune(queue: Queue) -> None:
    """Now and then, forget the jobs that failed more than 30 days ago, and holds and throttles that are over.

    Every instance does: what one has pruned costs the next nothing.
    """
    await asyncio.sleep(PRUNE_FIRST_AFTER)
    while True:
        try:
            await queue.ready()
            now = queue.clock.now()
            gone = await queue.store.prune(now, failed_before=now - FAILED_KEPT_MS)
            if gone:
                log.info("%d jobs that failed more than 30 days ago were forgotten", gone)
        except Exception as error:
            log.warning("pruning failed, it is tried again in an hour", exc_info=error)
        await asyncio.sleep(PRUNE_EVERY)

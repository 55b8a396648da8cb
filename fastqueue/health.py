"""How a queue does: what a health check and the person on call look at."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

from fastqueue._zones import zone_data_version
from fastqueue.codec import error_text

if TYPE_CHECKING:
    from fastqueue.queue import Queue

__all__ = ["HINT_AFTER", "Health", "health_of", "hint_later", "warn_that_nothing_runs"]

log = logging.getLogger("fastqueue")

HINT_AFTER = 10.0
"""Seconds after the first push until a process in which nothing runs is told so; programs that push and end are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How a queue does in this process.

    Attributes:
        ready: Whether all is as it should be: the store answers, and the workers run where they are meant to.
        state: "running", "stopping", "stopped", "restarting" after an unexpected error, "elsewhere" when this process
            only pushes, or "never started".
        running: How many jobs run here.
        last_claim: Seconds since the store last answered a claim; None: it has not yet.
        store: "ok", or what the store answered.
        listening: Whether notices of other processes' pushes arrive; None: the store has none, or nothing runs.
        oldest: Seconds that the oldest due job has waited; None: none waits.
        unclaimed: Kinds with due jobs that this process does not handle.
        zone_data: The version of the time zone data that schedules are computed with.
        zone_data_elsewhere: Other versions that instances of this queue use: their schedules may differ by an hour.
    """

    ready: bool
    state: str
    running: int
    last_claim: float | None
    store: str
    listening: bool | None
    oldest: float | None
    unclaimed: list[str]
    zone_data: str
    zone_data_elsewhere: list[str]

    def as_dict(self) -> dict[str, object]:
        """The same, for a JSON answer."""
        return asdict(self)


async def health_of(queue: Queue) -> Health:
    """Look at a queue and at its store."""
    now, worker = queue.clock.now(), queue.worker
    answer, oldest, unclaimed = "ok", None, list[str]()
    try:
        await queue.ready()
        due = [lane for lane in await queue.store.lanes() if lane.head <= now]
        handled = {name for name, kind in queue.kinds.items() if kind.handler is not None}
        oldest = max(((now - lane.head) / 1000 for lane in due), default=None)
        unclaimed = sorted({lane.kind for lane in due} - handled)
    except Exception as error:
        answer = error_text(error)
    claimed = None if worker is None or worker.claimed_at is None else queue.clock.seconds() - worker.claimed_at
    works = queue.state == "elsewhere" or (queue.state == "running" and (worker is None or worker.store_answers))
    return Health(
        ready=answer == "ok" and works,
        state=queue.state,
        running=0 if worker is None else len(worker.running),
        last_claim=claimed,
        store=answer,
        listening=None if worker is None or queue.store.wakes is None else queue.store.wakes.up,
        oldest=oldest,
        unclaimed=unclaimed,
        zone_data=zone_data_version(),
        zone_data_elsewhere=[] if worker is None else sorted(worker.zone_data_elsewhere),
    )


def hint_later(queue: Queue) -> None:
    """Warn in a while, if nothing has been started by then."""
    queue.home.later(HINT_AFTER, partial(warn_that_nothing_runs, queue))


def warn_that_nothing_runs(queue: Queue) -> None:
    """Tell of a queue that never started here and was pushed to, as in a mounted app: its jobs may wait in silence."""
    if queue.state == "never started":
        log.warning(
            "jobs are pushed, and no workers run in this process: they run in one that uses lifespan(queue) or "
            "queue.run(). A server runs the lifespan of its outermost app, and of no mounted one; a process that only "
            "pushes says so by lifespan(queue, run=False) or `async with queue`"
        )

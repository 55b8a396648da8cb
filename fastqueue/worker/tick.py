"""The ticker: pushes each schedule's next run ahead, once over all instances."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from fastqueue.clock import as_datetime, as_moment
from fastqueue.codec import error_text
from fastqueue.job import Claimed, Moment
from fastqueue.kind import Kind, Scheduled
from fastqueue.worker.run import extra, line

if TYPE_CHECKING:
    from fastqueue.queue import Queue

__all__ = ["Ticker", "was_missed"]

log = logging.getLogger("fastqueue")


class Ticker:
    """Remembers which run of each schedule this instance pushed last, and pushes the next once that has come."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._pushed: dict[str, Moment] = {}
        self._silent: set[str] = set()

    async def push_due(self, *, stopping: bool = False) -> Moment | None:
        """Push what needs pushing, and answer when to look again; one broken schedule never stops the others."""
        now = self._queue.clock.now()
        for kind, scheduled in self._queue.schedules:
            if self._pushed.get(scheduled.name, now) > now:
                continue
            try:
                await self._push_next(kind, scheduled, now)
            except Exception as error:
                if not stopping:
                    facts: dict[str, object] = {
                        "kind": kind.name,
                        "schedule": scheduled.name,
                        "error": error_text(error),
                    }
                    log.error("a schedule's run could not be pushed: %s", line(facts), extra=extra(facts))
        # One that failed, or has ended, leaves its last moment behind: the worker must not hurry after that.
        return min((at for at in self._pushed.values() if at > now), default=None)

    async def _push_next(self, kind: Kind[Any], scheduled: Scheduled, now: Moment) -> None:
        following = scheduled.when.next(as_datetime(now))
        if following is None:
            return
        at = as_moment("the schedule's answer", following)
        if at <= now:
            raise ValueError(f"{scheduled.when} answered {following}, which is not after {as_datetime(now)}")
        schedules = self._queue.store.schedules
        assert schedules is not None, "a schedule without the store's faculty is refused when it is registered"
        run = await schedules.push_run(scheduled.name, kind.run_of(scheduled, at), now=now)
        self._pushed[scheduled.name] = at
        if not run.pushed and run.recorded > at and scheduled.name not in self._silent:
            self._silent.add(scheduled.name)
            facts: dict[str, object] = {
                "schedule": scheduled.name,
                "next": following.isoformat(),
                "until": as_datetime(run.recorded).isoformat(),
            }
            log.warning(
                "a schedule was made more frequent, and stays silent until the run pushed by its old times: %s",
                line(facts),
                extra=extra(facts),
            )


def was_missed(kind: Kind[Any], job: Claimed, now: Moment) -> bool:
    """Whether a schedule's run came so late that its schedule, which skips missed runs, drops it."""
    for scheduled in kind.schedules:
        if scheduled.name == job.schedule and scheduled.missed == "skip":
            try:
                following = scheduled.when.next(as_datetime(job.run_at))
                return following is not None and as_moment("the schedule's answer", following) <= now
            except Exception as error:
                facts: dict[str, object] = {"kind": kind.name, "schedule": scheduled.name, "error": error_text(error)}
                log.error("a schedule could not say whether its run was missed: %s", line(facts), extra=extra(facts))
    return False

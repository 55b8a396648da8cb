"""The watch over running jobs: time limits, holds to renew, and an event loop that is blocked."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from fastqueue.codec import error_text
from fastqueue.worker.run import Attempt, extra, line

if TYPE_CHECKING:
    from fastqueue.worker.crew import Worker

__all__ = ["Watch"]

log = logging.getLogger("fastqueue")

BLOCKED = 1.0
"""Seconds that a beat may come late before it is said who blocks the event loop."""

RENEW_BOUND = 10.0


class Watch:
    """One timer for all time limits, and a beat that renews holds and notices a blocked loop."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None
        shortest = min((kind.options.hold_ms for kind in worker.queue.kinds.values()), default=60_000)
        self._pause = min(1.0, shortest / 6000)
        self._beat = self._loop.call_later(self._pause, self._beats, self._loop.time() + self._pause)

    def limit(self, attempt: Attempt) -> None:
        """Watch a run whose handler is about to be called."""
        if attempt.options.timeout_ms is None:
            return
        attempt.deadline = self._loop.time() + attempt.options.timeout_ms / 1000
        if self._timer is None or attempt.deadline < self._timer.when():
            self._arm(attempt.deadline)

    def close(self) -> None:
        """Watch no longer."""
        self._beat.cancel()
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(at, self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = self._loop.time()
        for attempt in self._worker.running:
            if attempt.deadline is not None and attempt.deadline <= now and not attempt.late:
                attempt.late = True
                # A thread cannot be interrupted: it keeps its worker and its hold until it ends.
                attempt.cancel()
        coming = [a.deadline for a in self._worker.running if a.deadline is not None and not a.late]
        if coming:
            self._arm(min(coming))

    def _beats(self, expected: float) -> None:
        now = self._loop.time()
        if now - expected > BLOCKED and self._worker.running:
            names = sorted({attempt.kind.name for attempt in self._worker.running})
            facts: dict[str, object] = {"seconds": round(now - expected, 1), "kinds": ",".join(names)}
            log.warning(
                "the event loop was blocked, so holds could not be renewed: use def handlers for blocking work: %s",
                line(facts),
                extra=extra(facts),
            )
        if self._renewing is None:
            due = self._due()
            if due:
                self._renewing = self._loop.create_task(self._renew(due), name="fastqueue-renew")
        self._beat = self._loop.call_later(self._pause, self._beats, now + self._pause)

    def _due(self) -> list[Attempt]:
        """Whose hold has run for a third of its time: early enough for a renewal to fail and be tried again."""
        now = self._worker.queue.clock.now()
        held = [*self._worker.running, *self._worker.settler.unsettled]
        return [a for a in held if not a.lost and a.held_until - now < a.job.hold_ms * 2 / 3]

    async def _renew(self, attempts: list[Attempt]) -> None:
        now = self._worker.queue.clock.now()
        until = now + max(attempt.job.hold_ms for attempt in attempts)
        try:
            async with asyncio.timeout(RENEW_BOUND):
                kept = await self._worker.queue.store.renew([a.job for a in attempts], now=now, until=until)
            for attempt, held in zip(attempts, kept, strict=True):
                if held:
                    attempt.held_until = until
                elif attempt in self._worker.running:
                    self._lose(attempt)
        except Exception as error:
            facts: dict[str, object] = {"jobs": len(attempts), "error": error_text(error)}
            log.warning("holds could not be renewed, trying again: %s", line(facts), extra=extra(facts))
        finally:
            self._renewing = None

    def _lose(self, attempt: Attempt) -> None:
        attempt.lost = True
        facts = attempt.fields(attempt=attempt.number)
        log.warning("a running job has lost its hold, and is told to stop: %s", line(facts), extra=extra(facts))
        attempt.cancel()

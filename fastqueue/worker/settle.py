"""Settling: the only place where the end of a run is told to the store, and then to everybody else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import Context
from typing import TYPE_CHECKING, Any

from fastqueue.clock import as_datetime
from fastqueue.codec import error_text
from fastqueue.errors import Mismatch, StoreUnavailable
from fastqueue.job import Claimed
from fastqueue.outcome import Outcome, Ran, Settlement
from fastqueue.worker.call import call
from fastqueue.worker.run import Attempt, End, carrying, extra, line

if TYPE_CHECKING:
    from fastqueue.queue import Queue

__all__ = ["SETTLE_BOUND", "Settler"]

log = logging.getLogger("fastqueue")

SETTLE_BOUND = 10.0
"""Seconds a settlement may take, with what it is tried again in them."""

_LEVELS = {Outcome.FAILED: logging.ERROR, Outcome.RETRIED: logging.WARNING, Outcome.PUT_BACK: logging.INFO}
_TEXTS = {
    Outcome.FAILED: "a job failed for good",
    Outcome.RETRIED: "a job failed, and will run again",
    Outcome.PUT_BACK: "a job was put back, as the queue stops",
}


class Settler:
    """Tells the store how runs ended: one statement in flight, and whatever ended meanwhile goes in the next.

    Args:
        on_fail: Given each attempt that failed for good and has someone to tell, once the store has kept it.
        ended: Called when a run that others may wait for has been told.
    """

    def __init__(self, queue: Queue, *, on_fail: Callable[[End], None], ended: Callable[[], None]) -> None:
        self._queue = queue
        self._on_fail = on_fail
        self._ended = ended
        self._ends: list[End] = []
        self._task: asyncio.Task[None] | None = None
        self.unsettled: set[Attempt] = set()
        self.failure: Exception | None = None

    def add(self, end: End) -> None:
        """A run is over; its settlement follows by itself."""
        say(end)
        self._ends.append(end)
        self.unsettled.add(end.attempt)
        if self._task is None:
            self._task = asyncio.create_task(self._settle(), name="fastqueue-settle", context=Context())

    async def hold_back(self, attempt: Attempt) -> None:
        """A job was refused by its limiter: it is given back, and its kind waits."""
        wait_ms = 0 if attempt.gave_up else attempt.refused_ms or 0
        facts = attempt.fields(**{"for": wait_ms / 1000})
        log.debug("a job is held back by its kind's rate: %s", line(facts), extra=extra(facts))
        holds = self._queue.store.holds
        assert holds is not None, "a rate without the store's faculty is refused when it is registered"
        try:
            async with asyncio.timeout(SETTLE_BOUND):
                kept = await holds.hold_back(attempt.job, until=self._queue.clock.now() + wait_ms)
        except Exception as error:
            facts = attempt.fields(error=error_text(error))
            log.error("could not hold a job back: %s", line(facts), extra=extra(facts))
            return
        end = End(attempt, Outcome.HELD_BACK, None, Settlement.done(attempt.job))
        observe(self._queue, end, Outcome.HELD_BACK if kept else Outcome.LOST)

    async def give_back(self, jobs: list[Claimed]) -> None:
        """Jobs could not start here: others may have them, and are told."""
        try:
            async with asyncio.timeout(SETTLE_BOUND):
                await self._queue.store.give_back(jobs)
                if self._queue.store.wakes is not None:
                    await self._queue.store.wakes.tell()
        except Exception as error:
            facts: dict[str, object] = {"jobs": len(jobs), "error": error_text(error)}
            log.error(
                "claimed jobs could not be given back, they wait for their holds: %s", line(facts), extra=extra(facts)
            )

    async def finish(self, seconds: float) -> None:
        """Wait until all is settled, but no longer than so many seconds; what is left runs again after its hold."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=seconds)

    async def _settle(self) -> None:
        try:
            while self._ends:
                ends, self._ends = self._ends, []
                try:
                    kept = await self._tell(ends)
                except Exception as error:
                    self.failure = error
                    for end in ends:
                        facts = end.attempt.fields(error=error_text(error))
                        log.error("could not tell the store how a run ended: %s", line(facts), extra=extra(facts))
                    self._forget(ends)
                    continue
                self._forget(ends)
                for end, was_ours in zip(ends, kept, strict=True):
                    self._after(end, was_ours)
        finally:
            self._task = None

    async def _tell(self, ends: list[End]) -> list[bool]:
        """Settle, trying again while the store hiccups, within the bound."""
        loop = asyncio.get_running_loop()
        until = loop.time() + SETTLE_BOUND
        pause = 0.05
        while True:
            try:
                async with asyncio.timeout_at(until):
                    return await self._queue.store.settle([end.settlement for end in ends])
            except TimeoutError:
                raise StoreUnavailable(f"the store did not answer within {SETTLE_BOUND:g} s") from None
            except StoreUnavailable:
                if loop.time() + pause >= until:
                    raise
                await asyncio.sleep(pause)
                pause = min(pause * 2, 1.0)

    def _forget(self, ends: list[End]) -> None:
        for end in ends:
            self.unsettled.discard(end.attempt)
            if end.attempt.job.limited and not self._tells_later(end):
                self._ended()

    def _tells_later(self, end: End) -> bool:
        return end.outcome is Outcome.FAILED and end.attempt.kind.gave_up is not None

    def _after(self, end: End, was_ours: bool) -> None:
        if not was_ours:
            facts = end.attempt.fields(attempt=end.attempt.number, outcome=end.outcome.value)
            log.warning("a run ended after its hold: another claim has its job: %s", line(facts), extra=extra(facts))
            observe(self._queue, end, Outcome.LOST)
            if self._tells_later(end) and end.attempt.job.limited:
                self._ended()
            return
        observe(self._queue, end, end.outcome)
        if end.outcome is Outcome.FAILED:
            self._on_fail(end)
        elif end.outcome is Outcome.RETRIED and end.settlement.at <= self._queue.clock.now():
            self._ended()


def say(end: End) -> None:
    """The line about a run that did not succeed; written before the store is told, so that it is never missing."""
    if end.error is None:
        return
    attempt, facts = end.attempt, dict[str, object]()
    if end.outcome is Outcome.FAILED:
        facts = attempt.fields(attempts=end.settlement.attempts, error=end.settlement.error)
    elif end.outcome is Outcome.RETRIED:
        at = as_datetime(end.settlement.at).isoformat(timespec="milliseconds")
        facts = attempt.fields(attempt=attempt.number, at=at, error=end.settlement.error)
    else:
        facts = attempt.fields()
    quiet = end.outcome is Outcome.PUT_BACK or isinstance(end.error, asyncio.CancelledError)
    log.log(
        _LEVELS[end.outcome],
        "%s: %s",
        _TEXTS[end.outcome],
        line(facts),
        extra=extra(facts),
        exc_info=None if quiet else end.error,
    )


def observe(queue: Queue, end: End, outcome: Outcome) -> None:
    """Tell the app's observer; an error of its own is logged and nothing else."""
    if queue.observe is None:
        return
    attempt = end.attempt
    told = end.error if outcome in (Outcome.RETRIED, Outcome.FAILED, Outcome.PUT_BACK) else None
    ran = Ran(
        kind=attempt.kind.name,
        attempt=attempt.number,
        outcome=outcome,
        error=told,
        took=attempt.took,
        waited=attempt.waited,
        id=attempt.job.id,
        queue=attempt.job.queue,
    )
    try:
        queue.observe(ran)
    except BaseException as error:
        # SystemExit and CancelledError too: an observer is not to end what settles everybody's jobs.
        facts = attempt.fields(error=error_text(error))
        log.error("observe failed: %s", line(facts), extra=extra(facts), exc_info=error)


async def tell_on_fail(end: End, carriers: Any) -> None:
    """Call a kind's `on_fail`, within its time limit and with what the job carried; its errors are logged."""
    attempt, job = end.attempt, end.attempt.job
    function = attempt.kind.gave_up
    if function is None:
        return
    timeout_ms = attempt.options.timeout_ms
    try:
        with carrying(attempt, carriers):
            value = attempt.kind.codec.decode(job.payload)
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                await call(function, attempt.kind.gave_up_is_async, value, end.error)
    except Mismatch as error:
        facts = attempt.fields(error=error_text(error))
        log.error("on_fail was not called, as the value does not fit: %s", line(facts), extra=extra(facts))
    except BaseException as error:
        facts = attempt.fields(error=error_text(error))
        log.error("on_fail failed: %s", line(facts), extra=extra(facts), exc_info=error)

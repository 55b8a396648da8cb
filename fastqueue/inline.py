"""Running jobs where they are pushed, for a queue on `inline://`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import Context
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from fastqueue.errors import InlineDelay, RegistrationError
from fastqueue.job import Claimed, NewJob, Pushed
from fastqueue.outcome import Outcome
from fastqueue.worker.run import Attempt, attempt_of, judge, perform
from fastqueue.worker.settle import observe, say, tell_on_fail

if TYPE_CHECKING:
    from fastqueue.queue import Queue

__all__ = ["refuse_to_wait", "run_inline"]

_ids = count(1)


def refuse_to_wait(queue: Queue, jobs: Sequence[NewJob]) -> None:
    """Refuse jobs that cannot run here and now, before any of them has.

    Raises:
        InlineDelay: one is due later.
        RegistrationError: one has its handler elsewhere.
    """
    now = queue.clock.now()
    for job in jobs:
        if job.run_at > now:
            raise InlineDelay(
                f"push of {job.kind!r}: due in {(job.run_at - now) / 1000:g} s, and an inline queue keeps no job until "
                "then: leave out delay= and at=, or use memory:// and drain()"
            )
        if queue.kinds[job.kind].handler is None:
            raise RegistrationError(f"push of {job.kind!r}: its handler is elsewhere, and an inline queue reaches none")


async def run_inline(queue: Queue, jobs: Sequence[NewJob]) -> list[Pushed]:
    """Run jobs one after the other, each once; when all have run, what the first that failed has raised is raised."""
    refuse_to_wait(queue, jobs)
    pushed: list[Pushed] = []
    errors: list[Exception] = []
    for job in jobs:
        pushed.append(Pushed(next(_ids), new=True))
        try:
            await _run(queue, job, pushed[-1].id)
        except Exception as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return pushed


async def _run(queue: Queue, job: NewJob, id: int) -> None:
    loop = asyncio.get_running_loop()
    attempt = attempt_of(_claimed(job, id), queue.kinds[job.kind], queue.clock.now())
    attempt.options = replace(attempt.options, attempts=1)
    timers: list[asyncio.TimerHandle] = []

    def begin(attempt: Attempt) -> None:
        if (limit := attempt.options.timeout_ms) is not None:
            attempt.deadline = loop.time() + limit / 1000
            timers.append(loop.call_at(attempt.deadline, expire))

    def expire() -> None:
        attempt.late = True
        attempt.cancel()

    # A context of its own, as in a worker: a handler that leans on what its pusher had set would fail there.
    body = perform(attempt, queue.carry, None, queue.clock, begin=begin)
    attempt.task = asyncio.create_task(body, name=f"fastqueue-job-{id}", context=Context())
    try:
        error: BaseException | None = await attempt.task
    finally:
        for timer in timers:
            timer.cancel()
    end = judge(attempt, error, queue.clock)
    say(end)
    observe(queue, end, end.outcome)
    if end.outcome is Outcome.FAILED:
        await tell_on_fail(end, queue.carry)
    if error is not None:
        raise error


def _claimed(job: NewJob, id: int) -> Claimed:
    return Claimed(
        id=id,
        token=0,
        kind=job.kind,
        queue=job.queue,
        payload=job.payload,
        run_at=job.run_at,
        held_until=job.run_at + job.hold_ms,
        hold_ms=job.hold_ms,
        attempts=1,
        options=job.options,
        carried=job.carried,
    )

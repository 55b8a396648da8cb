"""One run of a job: its limiter, its handler, and the verdict on how it ended."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any

from fastqueue.clock import Clock, as_datetime
from fastqueue.codec import error_text
from fastqueue.errors import Mismatch, OutOfTime, Permanent, WorkerLost
from fastqueue.job import Claimed, Moment, carried_of
from fastqueue.kind import Kind, Run
from fastqueue.options import Options, options_of
from fastqueue.outcome import Outcome, Settlement
from fastqueue.settings import as_ms
from fastqueue.worker.call import call

__all__ = ["Attempt", "End", "attempt_of", "carrying", "eager_task", "judge", "perform"]

log = logging.getLogger("fastqueue")

LIMITER_FAILED_MS = 10_000

_NOTHING_AROUND = nullcontext()


@dataclass(slots=True, eq=False)
class Attempt:
    """A claimed job on this worker, from its claim to the settlement of its run.

    Attributes:
        deadline: When its time limit ends, on the loop's clock; None: it has none, or the handler is not called yet.
        late: Its time limit has passed, and it was told.
        gave_up: The queue's stop has waited long enough for it, and it was told.
        lost: Its hold could not be renewed: another claim may have the job.
        refused_ms: Its limiter did not let it start; the kind waits for so long.
    """

    job: Claimed
    kind: Kind[Any]
    options: Options
    held_until: Moment
    waited: float = 0.0
    took: float = 0.0
    task: asyncio.Task[Any] | None = None
    deadline: float | None = None
    late: bool = False
    gave_up: bool = False
    lost: bool = False
    refused_ms: int | None = None
    carried: Mapping[str, str] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """Which attempt it is; of a lost last one, the attempt that was lost."""
        return min(self.job.attempts, self.options.attempts) if self.gone_with_its_worker else self.job.attempts

    @property
    def gone_with_its_worker(self) -> bool:
        """Whether the worker of its last attempt never told how that ended, so that no attempt is left."""
        return self.job.lost and self.job.attempts > self.options.attempts

    def cancel(self) -> None:
        """Cancel its handler, unless that runs in a thread, or the run is over and is being given back."""
        is_async = self.kind.handler is not None and self.kind.handler.is_async
        if self.task is not None and is_async and self.refused_ms is None:
            self.task.cancel()

    def fields(self, **more: object) -> dict[str, object]:
        """The facts of a log line about it, what it carries last."""
        facts: dict[str, object] = {"kind": self.kind.name, "job": self.job.id, **more}
        facts |= dict(sorted(carried_of(self.job.carried).items()))
        return facts


@dataclass(slots=True)
class End:
    """A run that is over, with what the store is to be told."""

    attempt: Attempt
    outcome: Outcome
    error: BaseException | None
    settlement: Settlement


def attempt_of(job: Claimed, kind: Kind[Any], now: Moment) -> Attempt:
    """A job claimed at a moment, as an attempt of this worker."""
    waited = (now - job.run_at) / 1000
    return Attempt(job, kind, options_of(job, kind.options), job.held_until, waited if waited > 0 else 0.0)


def eager_task(body: Coroutine[Any, Any, None], name: str, loop: asyncio.AbstractEventLoop) -> asyncio.Task[None]:
    """The task of one run, in an empty context: nothing leaks into it from another run or from the queue's start.

    From Python 3.12 on it begins at once, inside this call, so that a run that waits for nothing costs no turn of the
    loop and may be over when this returns.
    """
    if sys.version_info >= (3, 12):
        return asyncio.Task(body, loop=loop, name=name, context=Context(), eager_start=True)
    return loop.create_task(body, name=name, context=Context())


async def perform(
    attempt: Attempt, carriers: Any, limiter: Any, clock: Clock, *, begin: Callable[[Attempt], None]
) -> BaseException | None:
    """Ask the limiter and call the handler; what it raised, or None when it returned.

    Args:
        limiter: What is asked before the handler is called; None: nothing is.
        begin: Told as the handler is about to be called: its time limit runs from here.
    """
    job = attempt.job
    if attempt.gone_with_its_worker:
        return WorkerLost(f"its worker was lost in attempt {attempt.number} of {attempt.options.attempts}")
    try:
        with carrying(attempt, carriers) if carriers or job.carried is not None else _NOTHING_AROUND:
            if limiter is not None and (wait := await _ask(attempt, limiter)) > 0:
                attempt.refused_ms = wait
                return None
            value = attempt.kind.codec.decode(job.payload)
            begin(attempt)
            started = clock.seconds()
            handler = attempt.kind.handler
            assert handler is not None, "a kind without a handler is never claimed"
            args = (value, _run_of(attempt)) if handler.takes_run else (value,)
            try:
                await call(handler.function, handler.is_async, *args)
            except asyncio.CancelledError:
                if attempt.gave_up or not attempt.late:
                    raise
                limit = (attempt.options.timeout_ms or 0) / 1000
                raise OutOfTime(f"ran out of time: its limit is {limit:g} s") from None
            finally:
                attempt.took = max(clock.seconds() - started, 0.0)
    except BaseException as error:
        # CancelledError, SystemExit and KeyboardInterrupt too: whatever a handler raises is how its run ended.
        return error
    return None


async def _ask(attempt: Attempt, limiter: Any) -> int:
    """How long the kind is to wait, in milliseconds; 0: it may go."""
    try:
        wait = await limiter.ask(attempt.kind.name)
        return 0 if _none(wait) else max(as_ms("the limiter's answer", wait), 1)
    except asyncio.CancelledError:
        if attempt.gave_up:
            return 1
        raise
    except Exception as error:
        facts = attempt.fields(**{"for": LIMITER_FAILED_MS / 1000, "error": error_text(error)})
        log.error("a limiter could not say whether a job may start: %s", line(facts), extra=extra(facts))
        return LIMITER_FAILED_MS


def _none(wait: Any) -> bool:
    return bool((wait.total_seconds() if hasattr(wait, "total_seconds") else wait) <= 0)


def carrying(attempt: Attempt, carriers: Any) -> AbstractContextManager[object]:
    """What the carriers put around a run, or around its `on_fail`."""
    job = attempt.job
    attempt.carried = carried_of(job.carried)
    with ExitStack() as around:
        for carrier in carriers:
            around.enter_context(carrier.running(job.kind, job.queue, attempt.carried, job.attempts))
        return around.pop_all()


def _run_of(attempt: Attempt) -> Run:
    """What the handler may know of its attempt."""
    loop = asyncio.get_running_loop()
    deadline = None if attempt.deadline is None else attempt.deadline - loop.time()
    return Run(
        id=attempt.job.id,
        kind=attempt.kind.name,
        queue=attempt.job.queue,
        attempt=attempt.job.attempts,
        attempts_left=max(attempt.options.attempts - attempt.job.attempts, 0),
        carried=attempt.carried,
        deadline=None if deadline is None else as_datetime(attempt_now() + int(deadline * 1000)),
        should_stop=lambda: attempt.late or attempt.gave_up or attempt.lost,
    )


def attempt_now() -> Moment:
    """The machine's own clock: a handler compares its deadline with that."""
    return Clock().now()


def judge(attempt: Attempt, error: BaseException | None, clock: Clock) -> End:
    """What becomes of the job, decided once, in this order, and never by the type of a cancellation."""
    job, options = attempt.job, attempt.options
    if error is None:
        return End(attempt, Outcome.DONE, None, Settlement.done(job))
    now = clock.now()
    if attempt.gave_up:
        # An interruption beyond the free ones uses an attempt, but never the last: a stop fails no job.
        free = job.interruptions < options.interruptions or job.attempts >= options.attempts
        back = Settlement.put_back(job, at=now, error=error_text(error), free=free)
        return End(attempt, Outcome.PUT_BACK, error, back)
    final = permanent(error)
    if final is not None or job.attempts >= options.attempts:
        text = error_text(error if final is None else final)
        failed = Settlement.fail(job, at=now, error=text, attempts=attempt.number)
        return End(attempt, Outcome.FAILED, error, failed)
    wait_ms = _wait_ms(attempt)
    return End(attempt, Outcome.RETRIED, error, Settlement.retry(job, at=now + wait_ms, error=error_text(error)))


def permanent(error: BaseException) -> BaseException | None:
    """The error to keep when no further attempt would help; None: another may.

    `Permanent` counts anywhere in the chain of causes; so does a value that no longer fits.
    """
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        if isinstance(link, Permanent):
            return link.error if isinstance(link.error, BaseException) else link
        if isinstance(link, Mismatch | WorkerLost):
            return link
        seen.add(id(link))
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return None


def _wait_ms(attempt: Attempt) -> int:
    try:
        wait = attempt.options.backoff(attempt.job.attempts)
        return 0 if _none(wait) else as_ms("backoff", wait)
    except Exception as error:
        facts = attempt.fields(error=error_text(error))
        log.error("a backoff failed, the job waits a minute: %s", line(facts), extra=extra(facts))
        return 60_000


def extra(facts: Mapping[str, object]) -> dict[str, object]:
    """Facts as a log record keeps them, under names that no record uses itself."""
    return {f"fastqueue.{name}": value for name, value in facts.items()}


def line(facts: Mapping[str, object]) -> str:
    """Facts as the end of a log line: name=value, quoted where a value could be taken for more than one."""
    return " ".join(f"{name}={_shown(value)}" for name, value in facts.items())


def _shown(value: object) -> str:
    text = str(value)
    return text if text and text.isprintable() and not set(text) & set(" =\"'") else repr(text)

"""How a run ended: the word for it, and what the store is told."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from fastqueue.job import Claimed, Moment

__all__ = ["Ending", "Outcome", "Ran", "Settlement"]


class Outcome(StrEnum):
    """What became of a run; the value is the word in logs and labels."""

    DONE = "done"
    RETRIED = "retried"
    FAILED = "failed"
    HELD_BACK = "held back"
    PUT_BACK = "put back"
    LOST = "lost"


class Ending(StrEnum):
    """What a settlement does to the job's row."""

    GONE = "gone"
    WAITS = "waits"
    FAILED = "failed"


class Settlement(NamedTuple):
    """What the store is told about one claimed job; it changes the job only while that claim has it.

    Attributes:
        id, token: Which job, and by which claim. A settlement with another token is late and changes nothing.
        ending: The row is removed, goes back to its line, or goes to the failed ones.
        at: WAITS: the moment it is due. FAILED: the moment it failed.
        error: The text kept with it; None: none.
        attempts: How many attempts it has used.
        interruptions: How many times in a row it was put back by a stop.
    """

    id: int
    token: int
    ending: Ending
    at: Moment = 0
    error: str | None = None
    attempts: int = 0
    interruptions: int = 0

    @classmethod
    def done(cls, job: Claimed) -> Settlement:
        """The run succeeded: the job is removed."""
        return cls(job.id, job.token, Ending.GONE)

    @classmethod
    def retry(cls, job: Claimed, *, at: Moment, error: str | None) -> Settlement:
        """The run failed and another attempt is left: the job is due again at `at`."""
        return cls(job.id, job.token, Ending.WAITS, at, error, job.attempts)

    @classmethod
    def fail(cls, job: Claimed, *, at: Moment, error: str, attempts: int | None = None) -> Settlement:
        """The job failed for good at `at`; `attempts` when not all that were claimed were run."""
        return cls(job.id, job.token, Ending.FAILED, at, error, attempts or job.attempts)

    @classmethod
    def put_back(cls, job: Claimed, *, at: Moment, error: str, free: bool) -> Settlement:
        """The queue stopped before the run was over: due again at `at`; `free`: the attempt is given back."""
        used = job.attempts - 1 if free else job.attempts
        return cls(job.id, job.token, Ending.WAITS, at, error, used, job.interruptions + 1)


class Ran(NamedTuple):
    """What `observe` is told about each run, after the store has kept how it ended.

    Attributes:
        kind: The job's kind.
        attempt: Which attempt it was, 1 for the first. For HELD_BACK: the attempt it would have been.
        outcome: What became of the run. PUT_BACK: stopped with the queue. LOST: another claim has the job by now.
        error: What a run that did not succeed ended with; None: nothing.
        took: Seconds the handler ran; limiter, store and `on_fail` not counted.
        waited: Seconds from the moment the job was due to the start of the run, at least 0.
        id: The job's id.
        queue: The named queue the job waited in.
    """

    kind: str
    attempt: int
    outcome: Outcome
    error: BaseException | None
    took: float
    waited: float
    id: int
    queue: str

"""The port, one faculty more: jobs leave a store for another one, and arrive there once.

No two stores share a transaction. So a portion of jobs is first taken where it is, then kept where it goes, and then
deleted where it was; and it has a number, by which the other end knows what it has had. Whoever carries portions may be
killed at any point: the next one is given the same portion again, and the other end takes it once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fastqueue.job import Moment

__all__ = ["MovedJob", "Moves", "Portion"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedJob:
    """A job with all that is kept of it, apart from what only a claim needs.

    Attributes:
        mode, part: The part of its lane that says what limits it, as the stores keep it.
        failed_at: When it failed for good; None: it has not, and waits.
        created_at: When it was pushed.
    """

    id: int
    queue: str
    kind: str
    mode: int
    part: str
    run_at: Moment
    hold_ms: int
    attempts: int
    interruptions: int
    payload: str
    options: str | None
    unique_key: str | None
    alone_key: str | None
    carried: str | None
    schedule: str | None
    error: str | None
    failed_at: Moment | None
    created_at: Moment


class Portion(NamedTuple):
    """Jobs on their way from one store to another.

    Attributes:
        number: Larger than that of any portion that left the store before.
    """

    number: int
    jobs: list[MovedJob]


class Moves(ABC):
    """Faculty: jobs can leave for another store, and arrive from one, whole and once."""

    @abstractmethod
    async def identity(self) -> str:
        """The text that these jobs' store has and no other, whichever object or process asks."""

    @abstractmethod
    async def leave(self, to: str, *, now: Moment, limit: int) -> Portion | None:
        """Take about `limit` jobs that no claim holds, with the smallest ids, to the store with the identity `to`.

        - M1: a job leaves whole, whether it waits, is delayed or has failed; one that is held stays.
        - M2: from then on it is not claimed, not run again and not forgotten, and a claim that had it before is late. A
          push of its unique key still finds it waiting.
        - M3: a portion that has not `left` is answered again, the same jobs by the same number, before any other is
          taken; so it is to whoever asks at the same time.
        - None: there is no such job.

        Raises:
            MoveRefused: a portion is on its way to another store.
        """

    @abstractmethod
    async def left(self, number: int) -> None:
        """M4: delete the jobs of the portion with this number, and nothing else; when it is gone, do nothing."""

    @abstractmethod
    async def arrive(self, portion: Portion, *, origin: str) -> bool:
        """Keep the jobs of a portion, all or none; False: it has been here before.

        - M5: a portion is kept only when its number is larger than that of the last one from the store `origin`.
        - M6: a job is kept as it left, under its own id, or a new one where that is taken. A unique key with which
          another job waits here is let go. A push that follows gets a larger id than any of them.
        """

    @abstractmethod
    async def record(self, runs: Mapping[str, Moment]) -> None:
        """M7: take over the last run of each schedule, unless a later one is recorded."""

"""A job at each station of its road: as it is pushed, as it is claimed, as a person looks at it.

Moments here and in every store are whole milliseconds since 1970-01-01 UTC, and so are durations.
What a store only keeps and hands back (payload, options, carried) is text that fastqueue wrote.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, NamedTuple, TypeAlias

__all__ = ["DEFAULT_QUEUE", "Claimed", "Lane", "Moment", "NewJob", "Pushed", "StoredJob", "Which"]

Moment: TypeAlias = int
"""Milliseconds since 1970-01-01 00:00 UTC."""

DEFAULT_QUEUE = "default"


class NewJob(NamedTuple):
    """A job on its way to the store. A tuple, as what is claimed is: thousands may be made for one push.

    Attributes:
        kind: The name its handler is found by.
        payload: Its value, as JSON text.
        run_at: The moment it is due; one in the past means at once.
        queue: The named queue it waits in.
        hold_ms: How long a claim holds it before another may take it, in milliseconds.
        options: What this push set differently from its kind, as JSON text; None: nothing.
        unique_key: While a job of the kind waits with this key, another push of it adds none; None: not unique.
        latest: A push whose key waits moves that job to this push's time.
        alone_key: No two jobs of the kind with this key are held at once; None: no such rule.
        at_once: How many of the kind may be held for this one still to be claimed; 0: no limit.
        carried: What it brings from its push to its run, as JSON text; None: nothing.
        schedule: The name of the schedule that pushed it; None: a push did.
    """

    kind: str
    payload: str
    run_at: Moment
    queue: str = DEFAULT_QUEUE
    hold_ms: int = 120_000
    options: str | None = None
    unique_key: str | None = None
    latest: bool = False
    alone_key: str | None = None
    at_once: int = 0
    carried: str | None = None
    schedule: str | None = None

    @property
    def mode(self) -> int:
        """What limits it, as one number: twice `at_once`, and one more when it runs one at a time."""
        return 2 * self.at_once + (self.alone_key is not None)


class Pushed(NamedTuple):
    """The answer to a push.

    Attributes:
        id: The job's id in the store.
        new: False when a job with this key waited already: that one's id is given, and nothing was added.
    """

    id: int
    new: bool


class Claimed(NamedTuple):
    """A job as a claim hands it out: a copy, held until `held_until` by the claim that `token` names.

    A tuple, since one is made for every run and no other class that cannot be changed is made as quickly.

    Attributes:
        attempts: How many times it was claimed to be run, this claim included.
        interruptions: How many times in a row it was put back because a queue stopped.
        unique_key: The key it waited with. The claim has let it go.
        lost: The claim before this one held it until its time was up and never told how the run ended.
        error: The text of its last failure; None: it has not failed yet.
    """

    id: int
    token: int
    kind: str
    queue: str
    payload: str
    run_at: Moment
    held_until: Moment
    hold_ms: int
    attempts: int
    interruptions: int = 0
    options: str | None = None
    unique_key: str | None = None
    alone_key: str | None = None
    at_once: int = 0
    carried: str | None = None
    schedule: str | None = None
    error: str | None = None
    lost: bool = False

    @property
    def limited(self) -> bool:
        """Whether others of its kind may have to wait for the end of its run."""
        return self.at_once > 0 or self.alone_key is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJob:
    """A job as a person looks at it: one that waits, is held, or has failed for good.

    Attributes:
        run_ms: When it is due, in milliseconds since 1970 UTC; `run_at` is the same as a datetime.
        held_ms: Until when a claim holds it; None: no claim does.
        failed_ms: When it failed for good; None: it has not. `failed_at` is the same as a datetime.
        carried_text: What it carries, as JSON text; `carried` is the same as a mapping.
    """

    id: int
    kind: str
    queue: str
    payload: str
    run_ms: Moment
    attempts: int
    held_ms: Moment | None = None
    failed_ms: Moment | None = None
    error: str | None = None
    options: str | None = None
    unique_key: str | None = None
    alone_key: str | None = None
    at_once: int = 0
    carried_text: str | None = None
    schedule: str | None = None

    @property
    def run_at(self) -> datetime:
        """When it is due, in UTC."""
        return datetime.fromtimestamp(self.run_ms / 1000, UTC)

    @property
    def failed_at(self) -> datetime | None:
        """When it failed for good, in UTC; None: it has not."""
        return None if self.failed_ms is None else datetime.fromtimestamp(self.failed_ms / 1000, UTC)

    @property
    def carried(self) -> Mapping[str, str]:
        """What it carries from its push."""
        return carried_of(self.carried_text)

    def state(self, now: Moment) -> Literal["failed", "running", "delayed", "waiting"]:
        """Where on its road it is at the moment `now`."""
        if self.failed_ms is not None:
            return "failed"
        if self.held_ms is not None and self.held_ms > now:
            return "running"
        return "delayed" if self.run_ms > now else "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Which failed jobs are meant: those that are as everything says that is given; None: whatever it is.

    Attributes:
        error: A part of the error's text, letter by letter, capitals told apart.
        since: They failed at this moment or later.
        before: They failed before this moment.
    """

    kind: str | None = None
    queue: str | None = None
    error: str | None = None
    since: Moment | None = None
    before: Moment | None = None

    def fits(self, job: StoredJob) -> bool:
        """Whether a job that failed is one of those."""
        return (
            job.failed_ms is not None
            and self.kind in (None, job.kind)
            and self.queue in (None, job.queue)
            and (self.error is None or self.error in (job.error or ""))
            and (self.since is None or job.failed_ms >= self.since)
            and (self.before is None or job.failed_ms < self.before)
        )


@dataclass(frozen=True, slots=True)
class Lane:
    """The waiting jobs that share a queue, a kind and what limits them.

    Attributes:
        mode: See `NewJob.mode`; 0 is a lane that nothing limits.
        head: When the lane's first job is due.
    """

    queue: str
    kind: str
    mode: int
    head: Moment


def carried_of(text: str | None) -> dict[str, str]:
    """What a job carries, read from its stored text; it has been in a database, so all but text is dropped."""
    if not text:
        return {}
    try:
        found: object = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(name): value for name, value in found.items() if isinstance(value, str)}

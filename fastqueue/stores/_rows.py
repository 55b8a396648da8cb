"""Jobs as rows: the one order of columns that every SQL store's statements read and write.

A statement names its columns in the order given here, and the row it gives is read by place. Some columns are not
the table's own but what the statement makes of them, so that a row means the same whatever the dialect did first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from fastqueue.job import Claimed, Moment, NewJob, StoredJob, Which

__all__ = ["CLAIMED", "NEVER", "NEW_JOB", "STORED", "Row", "claimed", "failed_page_values", "new_job_values", "stored"]

Row: TypeAlias = Sequence[Any]

NEVER = 9223372036854775807
"""The `due` of a job that does not wait, and the `held_until` of one that is not held."""

NEW_JOB = (
    "queue",
    "kind",
    "mode",
    "part",
    "run_at",
    "due",
    "hold_ms",
    "payload",
    "options",
    "unique_key",
    "alone_key",
    "carried",
    "schedule",
    "created_at",
)
"""The columns a push writes; the others begin with their defaults."""

CLAIMED = (
    "id",
    "kind",
    "queue",
    "payload",
    "run_at",
    "held_until",
    "hold_ms",
    "attempts",
    "interruptions",
    "options",
    "unique_key",
    "alone_key",
    "mode",
    "carried",
    "schedule",
    "error",
    "lost",
)
"""The columns a claim hands out: `held_until` and `attempts` as the claim leaves them, `unique_key` as it found it,
`lost` whether the row's token was not 0 when it found it."""

STORED = (
    "id",
    "kind",
    "queue",
    "payload",
    "run_at",
    "attempts",
    "held_until",
    "failed_at",
    "error",
    "options",
    "unique_key",
    "alone_key",
    "mode",
    "carried",
    "schedule",
)
"""The columns a person looks at, as the table has them."""


def new_job_values(job: NewJob, now: Moment) -> dict[str, Any]:
    """What a push writes for a job, by column and in the order of `NEW_JOB`."""
    return {
        "queue": job.queue,
        "kind": job.kind,
        "mode": job.mode,
        "part": "",
        "run_at": job.run_at,
        "due": job.run_at,
        "hold_ms": job.hold_ms,
        "payload": job.payload,
        "options": job.options,
        "unique_key": job.unique_key,
        "alone_key": job.alone_key,
        "carried": job.carried,
        "schedule": job.schedule,
        "created_at": now,
    }


def failed_page_values(which: Which | None, limit: int, after: StoredJob | None) -> dict[str, Any]:
    """What a page of the failed jobs is asked with: a side that is left open reaches as far as moments go."""
    which = which or Which()
    return {
        "kind": which.kind,
        "queue": which.queue,
        "error": which.error,
        "since": -NEVER if which.since is None else which.since,
        "before": NEVER if which.before is None else which.before,
        "after_at": NEVER if after is None else after.failed_ms,
        "after_id": NEVER if after is None else after.id,
        "limit": limit,
    }


def claimed(row: Row, token: int) -> Claimed:
    """The job that a row of `CLAIMED` columns stands for, held by the claim with this token."""
    # By place and one by one: each claimed job comes through here, and names would double what it costs.
    id, kind, queue, payload, run_at, held_until, hold_ms, attempts, interruptions, options = row[:10]
    unique_key, alone_key, mode, carried, schedule, error, lost = row[10:]
    return Claimed(
        id, token, kind, queue, payload, run_at, held_until, hold_ms, attempts, interruptions, options,
        unique_key, alone_key, mode // 2, carried, schedule, error, bool(lost),
    )  # fmt: skip


def stored(row: Row) -> StoredJob:
    """The job that a row of `STORED` columns stands for."""
    return StoredJob(
        id=row[0],
        kind=row[1],
        queue=row[2],
        payload=row[3],
        run_ms=row[4],
        attempts=row[5],
        held_ms=None if row[6] == NEVER else row[6],
        failed_ms=row[7],
        error=row[8],
        options=row[9],
        unique_key=row[10],
        alone_key=row[11],
        at_once=row[12] // 2,
        carried_text=row[13],
        schedule=row[14],
    )

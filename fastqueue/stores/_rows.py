"""Jobs as rows: the one order of columns that every SQL store's statements read and write.

A statement names its columns in the order given here, and the row it gives is read by place. Some columns are not
the table's own but what the statement makes of them, so that a row means the same whatever the dialect did first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from fastqueue.job import Claimed, Moment, NewJob, StoredJob

__all__ = ["CLAIMED", "NEVER", "NEW_JOB", "STORED", "Row", "claimed", "new_job_values", "stored"]

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


def claimed(row: Row, token: int) -> Claimed:
    """The job that a row of `CLAIMED` columns stands for, held by the claim with this token."""
    (id, kind, queue, payload, run_at, held_until, hold_ms, attempts, interruptions) = row[:9]
    (options, unique_key, alone_key, mode, carried, schedule, error, lost) = row[9:]
    return Claimed(
        id=id,
        token=token,
        kind=kind,
        queue=queue,
        payload=payload,
        run_at=run_at,
        held_until=held_until,
        hold_ms=hold_ms,
        attempts=attempts,
        interruptions=interruptions,
        options=options,
        unique_key=unique_key,
        alone_key=alone_key,
        at_once=mode // 2,
        carried=carried,
        schedule=schedule,
        error=error,
        lost=bool(lost),
    )


def stored(row: Row) -> StoredJob:
    """The job that a row of `STORED` columns stands for."""
    (id, kind, queue, payload, run_at, attempts, held_until, failed_at) = row[:8]
    (error, options, unique_key, alone_key, mode, carried, schedule) = row[8:]
    return StoredJob(
        id=id,
        kind=kind,
        queue=queue,
        payload=payload,
        run_ms=run_at,
        attempts=attempts,
        held_ms=None if held_until == NEVER else held_until,
        failed_ms=failed_at,
        error=error,
        options=options,
        unique_key=unique_key,
        alone_key=alone_key,
        at_once=mode // 2,
        carried_text=carried,
        schedule=schedule,
    )

"""Jobs as the scripts are given them and hand them out: hashes of texts, where a field that is not there is None."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from fastqueue.job import Claimed, Moment, NewJob, StoredJob
from fastqueue.moves import MovedJob
from fastqueue.outcome import Ending, Settlement

__all__ = [
    "Argument",
    "arrived",
    "claim_of",
    "claimed",
    "escaped",
    "fields",
    "lane_of",
    "moved",
    "new_job",
    "padded",
    "parts_of",
    "settled",
    "stored",
]

Argument: TypeAlias = str | int


def escaped(name: str) -> str:
    """A queue's or kind's name as it stands in a lane's, whose parts a ":" separates."""
    return name.replace("%", "%25").replace(":", "%3A")


def _unescaped(name: str) -> str:
    return name.replace("%3A", ":").replace("%25", "%")


def lane_of(job: NewJob) -> str:
    """The name of a job's lane."""
    return f"{job.mode}:{escaped(job.queue)}:{escaped(job.kind)}"


def parts_of(lane: str) -> tuple[int, str, str]:
    """The mode, queue and kind that a lane is named after."""
    mode, queue, kind = lane.split(":")
    return int(mode), _unescaped(queue), _unescaped(kind)


def padded(id: int) -> str:
    """An id as it stands in keys."""
    return f"{id:016d}"


def fields(**given: Argument | None) -> list[Argument]:
    """Fields of a hash as arguments: how many there are, then name and value of each that is not None."""
    there = [part for name, value in given.items() if value is not None for part in (name, value)]
    return [len(there), *there]


def new_job(job: NewJob) -> list[Argument]:
    """The fields that a push gives."""
    return fields(
        payload=job.payload,
        hold_ms=job.hold_ms,
        options=job.options,
        key=job.unique_key,
        alone=job.alone_key,
        carried=job.carried,
        schedule=job.schedule,
    )


def settled(told: Settlement) -> Iterator[Argument]:
    """The end of a run."""
    yield from (padded(told.id), told.token, told.ending, told.at)
    if told.ending is Ending.GONE:
        yield 0
    else:
        yield from fields(attempts=told.attempts, interruptions=told.interruptions, error=told.error)


def claim_of(job: Claimed) -> list[Argument]:
    """A claim that is to be undone: id, token, and the unique key if it had one."""
    key = [] if job.unique_key is None else [job.unique_key]
    return [padded(job.id), job.token, len(key), *key]


def claimed(id: str, flat: Sequence[str], *, now: Moment, token: int) -> Claimed:
    """A job that a claim has taken, from its fields as they were before."""
    job = _hash(flat)
    mode, queue, kind = parts_of(job["lane"])
    hold_ms = int(job["hold_ms"])
    return Claimed(
        id=int(id),
        token=token,
        kind=kind,
        queue=queue,
        payload=job["payload"],
        run_at=int(job["run_at"]),
        held_until=now + hold_ms,
        hold_ms=hold_ms,
        attempts=int(job["attempts"]) + 1,
        interruptions=int(job.get("interruptions", 0)),
        options=job.get("options"),
        unique_key=job.get("key"),
        alone_key=job.get("alone"),
        at_once=mode // 2,
        carried=job.get("carried"),
        schedule=job.get("schedule"),
        error=job.get("error"),
        lost="token" in job,
    )


def stored(row: Sequence[Any]) -> StoredJob:
    """A job as it is looked at: its id, until when it is held, when it failed, its fields."""
    id, held, failed, flat = row
    job = _hash(flat)
    mode, queue, kind = parts_of(job["lane"])
    return StoredJob(
        id=int(id),
        kind=kind,
        queue=queue,
        payload=job["payload"],
        run_ms=int(job["run_at"]),
        attempts=int(job["attempts"]),
        held_ms=None if held is None else int(held),
        failed_ms=None if failed is None else int(failed),
        error=job.get("error"),
        options=job.get("options"),
        unique_key=job.get("key"),
        alone_key=job.get("alone"),
        at_once=mode // 2,
        carried_text=job.get("carried"),
        schedule=job.get("schedule"),
    )


def moved(id: str, flat: Sequence[str]) -> MovedJob:
    """A job that leaves; when it was pushed is not kept."""
    job = _hash(flat)
    mode, queue, kind = parts_of(job["lane"])
    return MovedJob(
        id=int(id),
        queue=queue,
        kind=kind,
        mode=mode,
        part="",
        run_at=int(job["run_at"]),
        hold_ms=int(job["hold_ms"]),
        attempts=int(job["attempts"]),
        interruptions=int(job.get("interruptions", 0)),
        payload=job["payload"],
        options=job.get("options"),
        unique_key=job.get("key"),
        alone_key=job.get("alone"),
        carried=job.get("carried"),
        schedule=job.get("schedule"),
        error=job.get("error"),
        failed_at=int(job["failed_at"]) if "failed_at" in job else None,
        created_at=int(job["run_at"]),
    )


def arrived(job: MovedJob) -> Iterator[Argument]:
    """A job that comes from another store."""
    yield from (padded(job.id), f"{job.mode}:{escaped(job.queue)}:{escaped(job.kind)}", job.run_at)
    for optional in (job.unique_key, job.failed_at):
        yield from (0,) if optional is None else (1, optional)
    yield from fields(
        payload=job.payload,
        hold_ms=job.hold_ms,
        attempts=job.attempts,
        interruptions=job.interruptions,
        options=job.options,
        alone=job.alone_key,
        carried=job.carried,
        schedule=job.schedule,
        error=job.error,
    )


def _hash(flat: Sequence[str]) -> dict[str, str]:
    return dict(zip(flat[::2], flat[1::2], strict=True))

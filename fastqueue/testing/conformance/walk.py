"""The plain walk of the line: what a claim is to find, worked out from a look at all jobs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fastqueue.job import Moment, StoredJob

__all__ = ["held_within_limits", "walk"]


def walk(
    jobs: Sequence[StoredJob],
    now: Moment,
    *,
    limit: int,
    queues: Sequence[str] | None,
    kinds: Collection[str],
    held_kinds: Mapping[str, Moment],
) -> list[int]:
    """The ids that one claim takes, in order, when no other is at work."""
    held = [job for job in jobs if job.state(now) == "running"]
    taken: list[StoredJob] = []
    rank = {queue: place for place, queue in enumerate(queues or ())}
    for job in sorted(jobs, key=lambda job: (rank.get(job.queue, 0), job.run_ms, job.id)):
        if len(taken) == limit:
            break
        others = [other for other in held + taken if other.kind == job.kind]
        if (
            job.state(now) == "waiting"
            and job.kind in kinds
            and held_kinds.get(job.kind, now) <= now
            and (queues is None or job.queue in rank)
            and not 0 < job.at_once <= len(others)
            and (job.alone_key is None or job.alone_key not in [other.alone_key for other in others])
        ):
            taken.append(job)
    return [job.id for job in taken]


def held_within_limits(jobs: Sequence[StoredJob], hold_ms: int) -> str | None:
    """What is wrong with a look at held jobs, all held for `hold_ms`, while others are at work; None: nothing.

    The order of their claims is not known, nor that of the moments the claimers gave. But of jobs held at one moment
    each was claimed at that moment or before, and the last of them saw all others: so the nth has a limit of n or
    more. Jobs without a limit are left out, as a claim of theirs may have come after.
    """
    holds = [(job.held_ms - hold_ms, job.held_ms, job) for job in jobs if job.held_ms is not None]
    for begin, _, job in holds:
        beside = [other for start, end, other in holds if start <= begin < end and other.kind == job.kind]
        if job.alone_key is not None and [other.alone_key for other in beside].count(job.alone_key) > 1:
            return f"two jobs of kind {job.kind} and key {job.alone_key} are held at once: {beside}"
        limits = sorted(other.at_once for other in beside if other.at_once)
        if any(limit < place for place, limit in enumerate(limits, 1)):
            return f"more jobs of kind {job.kind} are held at once than their limits {limits} let: {beside}"
    return None

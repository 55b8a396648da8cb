"""How runs ended, told in one statement each: settled, given back, or going on."""

from __future__ import annotations

from collections.abc import Sequence

from fastqueue.job import Claimed, Moment
from fastqueue.outcome import Ending, Settlement
from fastqueue.stores.postgres._access import Access

__all__ = ["give_back", "renew", "settle"]


async def settle(access: Access, settlements: Sequence[Settlement]) -> list[bool]:
    """Settle claims; see `Store.settle`."""
    gone = [end for end in settlements if end.ending is Ending.GONE]
    kept = [end for end in settlements if end.ending is not Ending.GONE]
    got = await access.do_on(
        access.here.ends,
        "settle.ends",
        gone_ids=[end.id for end in gone],
        gone_tokens=[end.token for end in gone],
        ids=[end.id for end in kept],
        tokens=[end.token for end in kept],
        dues=[end.at if end.ending is Ending.WAITS else None for end in kept],
        failed_ats=[end.at if end.ending is Ending.FAILED else None for end in kept],
        attempts=[end.attempts for end in kept],
        interruptions=[end.interruptions for end in kept],
        errors=[end.error for end in kept],
    )
    if len(got.rows) == len(settlements):
        return [True] * len(settlements)
    had = {(id, token) for id, token in got.rows}
    return [(end.id, end.token) in had for end in settlements]


async def give_back(access: Access, jobs: Sequence[Claimed]) -> list[bool]:
    """Undo claims; see `Store.give_back`."""
    got = await access.do_on(
        access.here.ends,
        "give_back.job",
        ids=[job.id for job in jobs],
        tokens=[job.token for job in jobs],
        unique_keys=[job.unique_key for job in jobs],
    )
    had: set[int] = set(got.rows[0][0] or [])
    return [place in had for place in range(1, len(jobs) + 1)]


async def renew(access: Access, jobs: Sequence[Claimed], *, now: Moment, until: Moment) -> list[bool]:
    """Hold jobs for longer; see `Store.renew`."""
    got = await access.do_on(
        access.here.ends,
        "renew.job",
        ids=[job.id for job in jobs],
        tokens=[job.token for job in jobs],
        now=now,
        until=until,
    )
    had = {(id, token) for id, token in got.rows}
    return [(job.id, job.token) in had for job in jobs]

"""How runs ended: the jobs' rows are locked in the order of their ids, compared here, and changed in bulk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol

from fastqueue.job import Claimed, Moment
from fastqueue.outcome import Ending, Settlement
from fastqueue.stores._rows import NEVER
from fastqueue.stores._sql import Call, Statements, Steps
from fastqueue.stores.mysql._push import lock_slots, look

__all__ = ["give_back_steps", "renew_steps", "settle_steps"]


class _OfClaim(Protocol):
    """What says which claim of which job it is about."""

    @property
    def id(self) -> int: ...

    @property
    def token(self) -> int: ...


def settle_steps(statements: Statements, settlements: Sequence[Settlement]) -> Steps[list[bool]]:
    """Settle claims; see `Store.settle`."""
    claims = yield Call(statements["settle.claims"], _ids(settlements))
    had = _had(settlements, claims.rows)
    told = [end for end, has in zip(settlements, had, strict=True) if has]
    gone = [end for end in told if end.ending is Ending.GONE]
    kept = [end for end in told if end.ending is not Ending.GONE]
    if gone:
        yield Call(statements["settle.gone"], {"gone": json.dumps([end.id for end in gone])})
    if kept:
        rows = [_kept(end) for end in kept]
        yield Call(statements["settle.kept"], {"rows": rows})
    return had


def give_back_steps(
    statements: Statements, jobs: Sequence[Claimed], *, kind_until: Moment | None = None
) -> Steps[list[bool]]:
    """Undo claims; see `Store.give_back`. With `kind_until` their kind is held back until then.

    The locks are taken in one order everywhere: slots, kinds, jobs.
    """
    keys = [(job.kind, job.unique_key) for job in jobs if job.unique_key is not None]
    taken = set[tuple[str, str]]()
    if keys:
        yield from lock_slots(statements, keys)
        found = yield from look(statements, keys)
        taken.update(found.values())
    if kind_until is not None:
        yield Call(statements["hold_back.kind"], {"kind": jobs[0].kind, "until": kind_until})
    claims = yield Call(statements["settle.claims"], _ids(jobs))
    had = _had(jobs, claims.rows)
    rows: list[dict[str, int | str | None]] = []
    for job, has in zip(jobs, had, strict=True):
        if has:
            free = job.unique_key is not None and (job.kind, job.unique_key) not in taken
            rows.append({"id": job.id, "unique_key": job.unique_key if free else None})
            if job.unique_key is not None:
                taken.add((job.kind, job.unique_key))
    if rows:
        yield Call(statements["give_back.job"], {"rows": rows})
    return had


def renew_steps(statements: Statements, jobs: Sequence[Claimed], *, now: Moment, until: Moment) -> Steps[list[bool]]:
    """Hold jobs for longer; see `Store.renew`."""
    claims = yield Call(statements["renew.claims"], {**_ids(jobs), "now": now})
    token_of: dict[int, int] = {row[0]: row[1] for row in claims.rows}
    had = [token_of.get(job.id) == job.token for job in jobs]
    held = [job.id for job, has in zip(jobs, had, strict=True) if has]
    if held:
        yield Call(statements["renew.job"], {"ids": held, "until": until})
    return had


def _ids(told: Sequence[_OfClaim]) -> dict[str, list[int]]:
    return {"ids": sorted({each.id for each in told})}


def _had(told: Sequence[_OfClaim], claims: Sequence[Sequence[int]]) -> list[bool]:
    """For each, whether its claim has the job; told twice, the second is late."""
    token_of: dict[int, int] = {row[0]: row[1] for row in claims}
    return [token_of.get(each.id) == each.token and token_of.pop(each.id) == each.token for each in told]


def _kept(end: Settlement) -> dict[str, int | str | None]:
    waits = end.ending is Ending.WAITS
    return {
        "id": end.id,
        "run_at": end.at if waits else None,
        "due": end.at if waits else NEVER,
        "failed_at": None if waits else end.at,
        "attempts": end.attempts,
        "interruptions": end.interruptions,
        "error": end.error,
    }

"""Push: jobs without keys are one insert; a unique key is looked for under the lock of its slot first.

A slot is a row that is always there. So a push that waits for the transaction that has pushed the same key waits for a
lock on a row, which is handed on in order, also when that transaction is rolled back. With a unique index instead,
those that waited for it would then deadlock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias
from zlib import crc32

from fastqueue.job import Moment, NewJob, Pushed
from fastqueue.stores._rows import new_job_values
from fastqueue.stores._sql import Call, Statements, Steps

__all__ = ["Key", "lock_slots", "look", "needs_transaction", "push_steps"]

Key: TypeAlias = tuple[str, str]
"""A kind and a unique key."""

SLOTS = 4096
"""How many rows the migration puts into the table of slots."""

ROWS = 1_000
CHARACTERS = 1_000_000
"""The most rows and characters of one insert: the server refuses statements of more than 16 MiB."""


def needs_transaction(jobs: Sequence[NewJob]) -> bool:
    """Whether a push is more than one statement that changes something."""
    return any(job.unique_key is not None for job in jobs) or len(list(_portions(jobs))) > 1


def push_steps(
    statements: Statements, jobs: Sequence[NewJob], now: Moment, *, joined: bool = False
) -> Steps[list[Pushed]]:
    """Push jobs by statements for within a transaction.

    Args:
        joined: Whether the transaction is the app's, which may see an older state: the looks are then `fresh`.
    """
    if all(job.unique_key is None for job in jobs):
        ids = yield from _insert(statements, jobs, now)
        return [Pushed(id, new=True) for id in ids]
    firsts = _firsts(jobs)
    keys = [own for own in firsts if isinstance(own, tuple)]
    waiting = yield from _waiting(statements, keys, joined=joined)
    moves = [{"id": id, "run_at": firsts[key].run_at} for key, id in waiting.items() if firsts[key].latest]
    if moves:
        yield Call(statements["push.move"], {"rows": moves})
    new = {own: job for own, job in firsts.items() if own not in waiting}
    ids = yield from _insert(statements, list(new.values()), now)
    id_of: dict[Key | int, int] = dict(zip([*waiting, *new], [*waiting.values(), *ids], strict=True))
    own_of = [_own(job, place) for place, job in enumerate(jobs)]
    return [Pushed(id_of[own], new=new.pop(own, None) is not None) for own in own_of]


def lock_slots(statements: Statements, keys: Sequence[Key]) -> Steps[None]:
    """Let no other transaction push or give back these keys until this one has ended."""
    slots = sorted({crc32(f"{kind}\0{key}".encode()) % SLOTS for kind, key in keys})
    yield Call(statements["push.slots"], {"slots": slots})


def look(statements: Statements, keys: Sequence[Key], *, joined: bool = False) -> Steps[dict[int, Key]]:
    """The jobs that wait with some keys whose slots are locked, by id.

    In a transaction of the app's, what others have committed and what it has pushed before is both asked for beside
    it: itself it may still see jobs that are gone, and to lock one of those would lock a gap.
    """
    got = yield Call(statements["push.waiting"], {"keys": sorted(keys)}, fresh=joined)
    rows = list(got.rows)
    if joined:
        rows += (yield Call(statements["push.unended"], {"keys": sorted(keys)}, fresh=True)).rows
    return {id: (kind, key) for id, kind, key in rows}


def _waiting(statements: Statements, keys: Sequence[Key], *, joined: bool) -> Steps[dict[Key, int]]:
    """The jobs that wait with some keys, and will until this transaction has ended."""
    yield from lock_slots(statements, keys)
    found = yield from look(statements, keys, joined=joined)
    new = (yield from _not_to_be_locked(statements, found)) if found and joined else {}
    ids = sorted(found.keys() - new.keys())
    kept = (yield Call(statements["push.keep"], {"ids": ids})).rows if ids else ()
    return {key: id for id, key in new.items()} | {(kind, key): id for id, kind, key in kept}


def _not_to_be_locked(statements: Statements, found: Mapping[int, Key]) -> Steps[dict[int, Key]]:
    """Those of the jobs found that have come since the app's transaction began, where to lock them would undo it.

    So does MariaDB from 11.6 on, at REPEATABLE READ. The runs of these may start before the transaction commits.
    """
    got = yield Call(statements["push.snapshots"], {})
    if [value for _, value in got.rows] != ["ON"]:
        return {}
    seen = yield Call(statements["push.seen"], {"ids": sorted(found)})
    ids = {row[0] for row in seen.rows}
    return {id: key for id, key in found.items() if id not in ids}


def _insert(statements: Statements, jobs: Sequence[NewJob], now: Moment) -> Steps[list[int]]:
    """Insert jobs and answer their ids: a statement that says how many rows it has gets as many ids in a row."""
    step = 1
    if len(jobs) > 1:
        got = yield Call(statements["push.step"], {})
        step = got.rows[0][0]
    ids: list[int] = []
    for portion in _portions(jobs):
        rows = [new_job_values(job, now) for job in portion]
        got = yield Call(statements["push.insert"], {"rows": rows})
        assert got.last_id is not None
        ids += range(got.last_id, got.last_id + step * len(rows), step)
    return ids


def _portions(jobs: Sequence[NewJob]) -> Iterator[list[NewJob]]:
    portion: list[NewJob] = []
    characters = 0
    for job in jobs:
        size = sum(len(text) for text in (job.payload, job.options, job.carried) if text)
        if portion and (len(portion) == ROWS or characters + size > CHARACTERS):
            yield portion
            portion, characters = [], 0
        portion.append(job)
        characters += size
    if portion:
        yield portion


def _own(job: NewJob, place: int) -> Key | int:
    """What a job of a batch is told apart by."""
    return place if job.unique_key is None else (job.kind, job.unique_key)


def _firsts(jobs: Sequence[NewJob]) -> dict[Key | int, NewJob]:
    """The first job of each key, with the time of the last that moves it; every job without a key."""
    firsts: dict[Key | int, NewJob] = {}
    for place, job in enumerate(jobs):
        own = _own(job, place)
        if own not in firsts:
            firsts[own] = job
        elif job.latest:
            firsts[own] = firsts[own]._replace(run_at=job.run_at, latest=True)
    return firsts

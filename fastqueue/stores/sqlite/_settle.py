"""Settle, give back and renew: each changes a job only while its claim has it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence

from fastqueue.job import Claimed, Moment
from fastqueue.outcome import Ending, Settlement
from fastqueue.stores.sqlite._database import Database

__all__ = ["give_back", "renew", "settle"]


def settle(database: Database, settlements: Sequence[Settlement]) -> list[bool]:
    """Tell how runs ended; answer for each whether its claim still had the job."""
    gone = set(_remove(database, [told for told in settlements if told.ending is Ending.GONE]))
    return [
        (told.id, told.token) in gone if told.ending is Ending.GONE else _put(database, told) for told in settlements
    ]


def _remove(database: Database, settlements: Sequence[Settlement]) -> Iterator[tuple[int, int]]:
    """Delete jobs that are done, a statement a claim; the id and token of each that was there."""
    by_token: defaultdict[int, list[int]] = defaultdict(list)
    for told in settlements:
        by_token[told.token].append(told.id)
    for token, ids in by_token.items():
        for (id,) in database.do("settle.gone", token=token, ids=json.dumps(ids)).fetchall():
            yield id, token


def _put(database: Database, told: Settlement) -> bool:
    """Put a job where its run's end sends it."""
    done = database.do(
        f"settle.{told.ending}",
        id=told.id,
        token=told.token,
        at=told.at,
        error=told.error,
        attempts=told.attempts,
        interruptions=told.interruptions,
    )
    return done.rowcount == 1


def give_back(database: Database, jobs: Sequence[Claimed]) -> list[bool]:
    """Undo claims; answer for each whether it still had the job."""
    return [_give_back_one(database, job) for job in jobs]


def _give_back_one(database: Database, job: Claimed) -> bool:
    done = database.do("give_back.job", id=job.id, token=job.token, kind=job.kind, unique_key=job.unique_key)
    return done.rowcount == 1


def renew(database: Database, jobs: Sequence[Claimed], *, now: Moment, until: Moment) -> list[bool]:
    """Hold jobs for longer; answer for each whether its claim still held it."""
    return [database.do("renew.job", id=job.id, token=job.token, now=now, until=until).rowcount == 1 for job in jobs]

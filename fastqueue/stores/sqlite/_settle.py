"""Settle, give back and renew: a statement a job, which changes it only while its claim has it."""

from __future__ import annotations

from collections.abc import Sequence

from fastqueue.job import Claimed, Moment
from fastqueue.outcome import Ending, Settlement
from fastqueue.stores.sqlite._database import Database

__all__ = ["give_back", "renew", "settle"]


def settle(database: Database, settlements: Sequence[Settlement]) -> list[bool]:
    """Tell how runs ended; answer for each whether its claim still had the job."""
    return [_settle_one(database, told) for told in settlements]


def _settle_one(database: Database, told: Settlement) -> bool:
    if told.ending is Ending.GONE:
        return database.do("settle.gone", id=told.id, token=told.token).rowcount == 1
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
    return [
        database.do("give_back.job", id=job.id, token=job.token, kind=job.kind, unique_key=job.unique_key).rowcount == 1
        for job in jobs
    ]


def renew(database: Database, jobs: Sequence[Claimed], *, now: Moment, until: Moment) -> list[bool]:
    """Hold jobs for longer; answer for each whether its claim still held it."""
    return [database.do("renew.job", id=job.id, token=job.token, now=now, until=until).rowcount == 1 for job in jobs]

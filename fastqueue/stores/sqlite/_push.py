"""Push: jobs without a unique key in inserts of many rows, each other in one of its own, which may add nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from fastqueue.job import Moment, NewJob, Pushed
from fastqueue.stores._rows import new_job_values
from fastqueue.stores._sql import Call, Statements, Steps

__all__ = ["portions", "push_steps"]

T = TypeVar("T")

SIZES = (100, 10, 1)
"""How many rows an insert may have: few texts, so that each is prepared once; a hundred is as fast as a thousand."""


def push_steps(statements: Statements, jobs: Sequence[NewJob], now: Moment) -> Steps[list[Pushed]]:
    """Push jobs by statements that may run in any transaction, of the store's or the app's.

    Drivers should bind by place ("qmark"): SQLite looks a name up in the list of all, once for each.
    """
    pushed: list[Pushed] = []
    for keyed, run in groupby(jobs, lambda job: job.unique_key is not None):
        if keyed:
            for job in run:
                pushed.append((yield from _push_unique(statements, job, now)))
        else:
            for portion in portions(list(run)):
                pushed += yield from _push_plain(statements, portion, now)
    return pushed


def _push_plain(statements: Statements, jobs: Sequence[NewJob], now: Moment) -> Steps[list[Pushed]]:
    rows = [new_job_values(job, now) for job in jobs]
    added = yield statements["push.insert"].for_rows(rows)
    assert added.last_id is not None
    # Nobody else writes meanwhile, so the ids of one insert follow each other.
    return [Pushed(id, new=True) for id in range(added.last_id - len(jobs) + 1, added.last_id + 1)]


def _push_unique(statements: Statements, job: NewJob, now: Moment) -> Steps[Pushed]:
    added = yield Call(statements["push.insert_unique"], new_job_values(job, now))
    if added.touched:
        assert added.last_id is not None
        return Pushed(added.last_id, new=True)
    waiting = yield Call(statements["push.waiting"], {"kind": job.kind, "unique_key": job.unique_key})
    ((id,),) = waiting.rows
    if job.latest:
        yield Call(statements["push.move"], {"id": id, "run_at": job.run_at})
    return Pushed(id, new=False)


def portions(jobs: Sequence[T]) -> Iterator[Sequence[T]]:
    """What inserts of many rows are made for, cut into the sizes that they may have."""
    begin = 0
    for size in SIZES:
        while len(jobs) - begin >= size:
            yield jobs[begin : begin + size]
            begin += size

"""Push: each job is one insert, which adds nothing where its unique key waits."""

from __future__ import annotations

from collections.abc import Sequence

from fastqueue.job import Moment, NewJob, Pushed
from fastqueue.stores._rows import new_job_values
from fastqueue.stores._sql import Call, Statements, Steps

__all__ = ["push_steps"]


def push_steps(statements: Statements, jobs: Sequence[NewJob], now: Moment) -> Steps[list[Pushed]]:
    """Push jobs by statements that may run in any transaction, of the store's or the app's."""
    pushed: list[Pushed] = []
    for job in jobs:
        added = yield Call(statements["push.insert"], new_job_values(job, now))
        if added.touched:
            assert added.last_id is not None
            pushed.append(Pushed(added.last_id, new=True))
            continue
        waiting = yield Call(statements["push.waiting"], {"kind": job.kind, "unique_key": job.unique_key})
        ((id,),) = waiting.rows
        if job.latest:
            yield Call(statements["push.move"], {"id": id, "run_at": job.run_at})
        pushed.append(Pushed(id, new=False))
    return pushed

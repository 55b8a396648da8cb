"""What the PostgreSQL store can do beyond the verbs in its own way: schedules, held kinds, the failed jobs."""

from __future__ import annotations

from collections.abc import Sequence

from fastqueue.job import Claimed, Moment, NewJob
from fastqueue.store import Holds, RunPushed
from fastqueue.stores._rows import new_job_values
from fastqueue.stores._sql_faculties import SQLFailedJobs, SQLSchedules
from fastqueue.stores.postgres._access import Access

__all__ = ["PostgresFailedJobs", "PostgresHolds", "PostgresSchedules"]


class PostgresSchedules(SQLSchedules[Access]):
    """A table of each schedule's last run, written by the statement that pushes it."""

    async def push_run(self, schedule: str, job: NewJob, *, now: Moment) -> RunPushed:
        notice = self._access.notice(job.queue if job.run_at <= now else None)
        got = await self._access.do("schedules.push_run", **new_job_values(job, now), **notice, name=schedule)
        if not got.rows:
            # A statement of its own: the one before may not see the row that was in its way.
            got = await self._access.do("schedules.one", name=schedule)
            return RunPushed(False, got.rows[0][0])
        pushed, recorded, _ = got.rows[0]
        return RunPushed(pushed, recorded)


class PostgresHolds(Holds):
    """A table of the kinds that are held back."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def hold_back(self, job: Claimed, *, until: Moment) -> bool:
        got = await self._access.do_on(
            self._access.here.ends,
            "hold_back.kind",
            kind=job.kind,
            until=until,
            id=job.id,
            token=job.token,
            unique_key=job.unique_key,
        )
        return bool(got.rows[0][0])


class PostgresFailedJobs(SQLFailedJobs[Access]):
    """The rows that have a `failed_at`; each change is one statement."""

    async def run_again(self, ids: Sequence[int], *, at: Moment) -> list[bool]:
        got = await self._access.do("failed.run_again", ids=ids, at=at, **self._access.notice(""))
        again: set[int] = set(got.rows[0][0] or [])
        return [id in again for id in ids]

    async def forget(self, ids: Sequence[int]) -> list[bool]:
        got = await self._access.do("failed.forget", ids=ids)
        gone = {id for (id,) in got.rows}
        return [id in gone for id in ids]

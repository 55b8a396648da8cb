"""What the MySQL store can do beyond the verbs in its own way: schedules, held kinds, the failed jobs, throttles."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from fastqueue.job import Claimed, Moment, NewJob
from fastqueue.store import Hits, Holds, RunPushed
from fastqueue.stores._sql import Call, Steps
from fastqueue.stores._sql_faculties import SQLFailedJobs, SQLSchedulesInSteps, SQLThrottles
from fastqueue.stores.mysql._access import Access
from fastqueue.stores.mysql._lanes import Lanes
from fastqueue.stores.mysql._names import refuse_long, refuse_long_names
from fastqueue.stores.mysql._push import push_steps
from fastqueue.stores.mysql._settle import give_back_steps

__all__ = ["MySQLFailedJobs", "MySQLHolds", "MySQLSchedules", "MySQLThrottles"]


class MySQLSchedules(SQLSchedulesInSteps[Access]):
    """Schedules, and the lanes that are there before the jobs of their runs."""

    def __init__(self, access: Access, lanes: Lanes) -> None:
        super().__init__(access, partial(push_steps, access.statements))
        self._lanes = lanes

    async def push_run(self, schedule: str, job: NewJob, *, now: Moment) -> RunPushed:
        refuse_long("schedule", schedule)
        refuse_long_names([job])
        await self._lanes.ready([job])
        return await super().push_run(schedule, job, now=now)


class MySQLHolds(Holds):
    """The moments in the rows of kinds."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def hold_back(self, job: Claimed, *, until: Moment) -> bool:
        statements, ends = self._access.statements, self._access.here.ends
        (had,) = await self._access.together(ends, lambda: give_back_steps(statements, [job], kind_until=until))
        return had


class MySQLFailedJobs(SQLFailedJobs[Access]):
    """The rows that have a `failed_at`; they are locked, then changed."""

    async def run_again(self, ids: Sequence[int], *, at: Moment) -> list[bool]:
        return await self._change("failed.run_again", ids, at=at)

    async def forget(self, ids: Sequence[int]) -> list[bool]:
        return await self._change("failed.forget", ids)

    async def _change(self, name: str, ids: Sequence[int], **values: Moment) -> list[bool]:
        if not ids:
            return []
        statements = self._access.statements

        def change() -> Steps[list[bool]]:
            got = yield Call(statements["failed.these"], {"ids": sorted(ids)})
            failed = [id for (id,) in got.rows]
            if failed:
                yield Call(statements[name], {"ids": failed, "gone": json.dumps(failed), **values})
            return [id in failed for id in ids]

        return await self._access.change(change)


class MySQLThrottles(SQLThrottles):
    """Throttles, for a server whose writes answer no rows."""

    async def hit(self, key: str, *, now: Moment, window_ms: int) -> Hits:
        refuse_long("key", key)
        statements = self._access.statements

        def hit() -> Steps[Hits]:
            yield Call(statements["throttles.hit"], {"name": key, "now": now, "window_ms": window_ms})
            got = yield Call(statements["throttles.tries"], {"name": key, "now": now})
            return Hits(*got.rows[0])

        return await self._access.change(hit)

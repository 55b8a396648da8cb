"""What the MySQL store can do beyond the verbs: schedules, held kinds, the failed jobs, throttles, time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from fastqueue.job import Claimed, Moment, NewJob, StoredJob, Which
from fastqueue.store import FailedJobs, Hits, Holds, RunPushed, Schedules, StoreTime, Throttles
from fastqueue.stores._rows import failed_page_values, stored
from fastqueue.stores._sql import Call, Steps
from fastqueue.stores.mysql._access import Access
from fastqueue.stores.mysql._lanes import Lanes
from fastqueue.stores.mysql._names import refuse_long, refuse_long_names
from fastqueue.stores.mysql._push import push_steps
from fastqueue.stores.mysql._settle import give_back_steps

__all__ = ["MySQLFailedJobs", "MySQLHolds", "MySQLSchedules", "MySQLThrottles", "MySQLTime"]


class MySQLSchedules(Schedules):
    """A table of each schedule's last run, written in the transaction that pushes it."""

    def __init__(self, access: Access, lanes: Lanes) -> None:
        self._access = access
        self._lanes = lanes

    async def push_run(self, schedule: str, job: NewJob, *, now: Moment) -> RunPushed:
        refuse_long("schedule", schedule)
        refuse_long_names([job])
        await self._lanes.ready([job])
        return await self._access.together(
            self._access.here.others, lambda: self._push(schedule, replace(job, latest=False), now)
        )

    def _push(self, schedule: str, job: NewJob, now: Moment) -> Steps[RunPushed]:
        statements = self._access.statements
        recorded = yield Call(statements["schedules.record"], {"name": schedule, "run_at": job.run_at})
        if not recorded.touched:
            got = yield Call(statements["schedules.one"], {"name": schedule})
            return RunPushed(False, got.rows[0][0])
        (pushed,) = yield from push_steps(statements, [job], now)
        return RunPushed(pushed.new, job.run_at)

    async def recorded(self) -> dict[str, Moment]:
        got = await self._access.do("schedules.recorded")
        return {str(name): int(run_at) for name, run_at in got.rows}

    async def tell_zone_data(self, version: str, *, now: Moment) -> dict[str, Moment]:
        await self._access.do("schedules.tell", name=version, now=now)
        got = await self._access.do("schedules.told")
        return {str(told): int(at) for told, at in got.rows}


class MySQLHolds(Holds):
    """The moments in the rows of kinds."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def hold_back(self, job: Claimed, *, until: Moment) -> bool:
        statements, ends = self._access.statements, self._access.here.ends
        (had,) = await self._access.together(ends, lambda: give_back_steps(statements, [job], kind_until=until))
        return had


class MySQLFailedJobs(FailedJobs):
    """The rows that have a `failed_at`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def page(
        self, which: Which | None = None, *, limit: int = 100, after: StoredJob | None = None
    ) -> list[StoredJob]:
        got = await self._access.do("failed.page", **failed_page_values(which, limit, after))
        return [stored(row) for row in got.rows]

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

        return await self._access.together(self._access.here.others, change)


class MySQLThrottles(Throttles):
    """A table of the windows that run."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def hit(self, key: str, *, now: Moment, window_ms: int) -> Hits:
        refuse_long("key", key)
        statements = self._access.statements

        def hit() -> Steps[Hits]:
            yield Call(statements["throttles.hit"], {"name": key, "now": now, "window_ms": window_ms})
            got = yield Call(statements["throttles.tries"], {"name": key, "now": now})
            return Hits(*got.rows[0])

        return await self._access.together(self._access.here.others, hit)

    async def tries(self, key: str, *, now: Moment) -> Hits | None:
        got = await self._access.do("throttles.tries", name=key, now=now)
        return Hits(*got.rows[0]) if got.rows else None

    async def clear(self, key: str) -> None:
        await self._access.do("throttles.clear", name=key)


class MySQLTime(StoreTime):
    """The server's clock."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def now(self) -> Moment:
        return int((await self._access.do("meta.now")).rows[0][0])

"""Clauses of what only some stores can do: telling other processes, a clock of their own, tables."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from fastqueue.store import Store
from fastqueue.testing.conformance.clause import clause
from fastqueue.testing.conformance.stage import T0, Stage, job

__all__ = ["PATIENCE", "FacultyClauses", "listening"]

PATIENCE = 30  # seconds until a wake is taken for lost; how soon it comes decides nothing


class FacultyClauses:
    @clause("wakes")
    async def test_wakes_come_for_a_push_of_another_instance(self, on: Stage) -> None:
        """wakes: call `wake` for each notice; `Store.push` tells other processes that there is something to look at."""
        async with listening(await on.another()) as woken:
            await on.push(1)
            await asyncio.wait_for(woken.wait(), PATIENCE)

    @clause("wakes", "failed")
    async def test_wakes_come_for_a_job_that_is_run_again(self, on: Stage) -> None:
        """wakes: running a failed job again tells other processes, as a push does."""
        id = await on.failed(1)
        async with listening(await on.another()) as woken:
            assert await on.failures.run_again([id], at=T0) == [True]
            await asyncio.wait_for(woken.wait(), PATIENCE)

    @clause("wakes", "schedules")
    async def test_wakes_come_for_the_run_of_a_schedule(self, on: Stage) -> None:
        """wakes: the push of a run tells other processes, as any push does."""
        async with listening(await on.another()) as woken:
            assert (await on.schedules.push_run("report", job(kind="report", schedule="report"), now=T0)).pushed
            await asyncio.wait_for(woken.wait(), PATIENCE)

    @clause("time")
    async def test_time_is_one_for_all_instances(self, on: Stage) -> None:
        """time: the store has a clock, the same for every instance."""
        other = await on.another()
        assert on.store.time
        assert other.time
        moments = [await time.now() for time in (on.store.time, other.time, on.store.time)]
        assert moments == sorted(moments)

    @clause("migrates")
    async def test_migrates_what_is_missing_and_nothing_twice(self, on: Stage) -> None:
        """migrates: an open store's tables are up to date; migrating them applies nothing."""
        assert on.store.migrates
        assert await on.store.migrates.current() == on.store.migrates.latest
        await on.push(1)
        assert await on.store.migrates.migrate() == []
        assert len(await on.stored()) == 1

    @clause("migrates")
    async def test_migrates_as_sql_for_those_who_run_their_own(self, on: Stage) -> None:
        """migrates: the migrations after a number as SQL text."""
        assert on.store.migrates
        whole = on.store.migrates.sql()
        assert "CREATE TABLE" in whole.upper()
        assert "CREATE TABLE" not in on.store.migrates.sql(since=on.store.migrates.latest).upper()


@asynccontextmanager
async def listening(store: Store) -> AsyncGenerator[asyncio.Event]:
    """An event that is set by each wake of a store that listens."""
    assert store.wakes
    woken = asyncio.Event()
    task = asyncio.create_task(store.wakes.listen(woken.set))
    try:
        async with asyncio.timeout(PATIENCE):
            while not store.wakes.up:  # noqa: ASYNC110  it is no event, and tests alone wait for it
                await asyncio.sleep(0.01)
        woken.clear()
        yield woken
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

"""Clauses of looking at what is kept: lanes, counts, jobs; and of opening and closing."""

from __future__ import annotations

from fastqueue.job import Lane
from fastqueue.outcome import Settlement
from fastqueue.store import Count, Keep
from fastqueue.testing.conformance.clause import clause
from fastqueue.testing.conformance.stage import HOUR, MINUTE, T0, Asks, Stage, job, number, numbers

__all__ = ["LookingClauses"]


class LookingClauses:
    async def test_lanes_are_those_with_waiting_jobs(self, on: Stage) -> None:
        """lanes: every lane that has waiting jobs, with the moment its first one is due."""
        assert await on.store.lanes() == []
        await on.push(1, T0 + HOUR)
        await on.push(2, T0 + MINUTE)
        await on.push(3, T0, kind="other")
        await on.take(T0)
        assert await on.store.lanes() == [Lane("default", "count", 0, T0 + MINUTE)]

    @clause(Keep.QUEUES, Keep.AT_ONCE, Keep.ONE_AT_A_TIME)
    async def test_lanes_are_apart_by_queue_kind_and_limits(self, on: Stage) -> None:
        """lanes: a lane is the waiting jobs that share a queue, a kind and what limits them."""
        asks: tuple[Asks, ...] = (
            {},
            {"queue": "slow"},
            {"kind": "other"},
            {"at_once": 2},
            {"at_once": 3},
            {"alone_key": "a"},
            {"alone_key": "b"},
            {"alone_key": "a", "at_once": 2},
        )
        for n, each in enumerate(asks):
            await on.store.push([job(n, T0 + n, **each)], now=T0)
        await on.failed(9, kind="report")
        found = sorted((each.queue, each.kind, each.mode, each.head - T0) for each in await on.store.lanes())
        assert found == [
            ("default", "count", 0, 0),
            ("default", "count", 1, 5),
            ("default", "count", 4, 3),
            ("default", "count", 5, 7),
            ("default", "count", 6, 4),
            ("default", "other", 0, 2),
            ("slow", "count", 0, 1),
        ]

    @clause(Keep.QUEUES)
    async def test_counts_tell_how_many_are_where(self, on: Stage) -> None:
        """counts: how many jobs of each queue and kind wait, are delayed, held and failed."""
        assert await on.store.counts(T0) == []
        await on.store.push([job(n, T0 - n) for n in range(5)], now=T0)
        await on.store.push([job(5, T0 + 1), job(6, queue="slow"), job(7, T0 + 1, kind="other")], now=T0)
        first, *_ = await on.claim(limit=2)
        assert await on.fail(first)
        by_queue_and_kind = {(each.queue, each.kind): each for each in await on.store.counts(T0)}
        assert by_queue_and_kind == {
            ("default", "count"): Count("default", "count", waiting=3, delayed=1, running=1, failed=1, oldest=T0 - 2),
            ("slow", "count"): Count("slow", "count", waiting=1, delayed=0, running=0, failed=0, oldest=T0),
            ("default", "other"): Count("default", "other", waiting=0, delayed=1, running=0, failed=0, oldest=None),
        }

    async def test_counts_take_a_lost_job_for_a_waiting_one(self, on: Stage) -> None:
        """counts: a job waits when no claim holds it: at exactly the end of its hold."""
        await on.push(1)
        await on.take(T0)
        assert [(each.waiting, each.running, each.oldest) for each in await on.store.counts(T0)] == [(0, 1, None)]
        assert [(each.waiting, each.running, each.oldest) for each in await on.store.counts(T0 + MINUTE)] == [
            (1, 0, T0)
        ]
        assert [each.state(T0 + MINUTE) for each in await on.stored(T0 + MINUTE)] == ["waiting"]
        assert numbers(await on.stored(T0 + MINUTE, state="waiting")) == [1]
        assert await on.stored(T0 + MINUTE, state="running") == []

    @clause(Keep.QUEUES)
    async def test_jobs_are_listed_by_state_kind_and_queue(self, on: Stage) -> None:
        """jobs: jobs as they are kept, by id; `state` is "waiting", "delayed", "running" or "failed"."""
        await on.store.push([job(n, T0 - 9 + n) for n in range(4)], now=T0)
        await on.store.push([job(4, T0 + 1), job(5, queue="slow"), job(6, kind="other")], now=T0)
        failed, running = await on.claim(limit=2)
        assert await on.fail(failed)
        for state, expected in (("failed", [0]), ("running", [1]), ("waiting", [2, 3, 5, 6]), ("delayed", [4])):
            assert numbers(await on.stored(T0, state=state)) == expected
        assert numbers(await on.stored(T0)) == list(range(7))
        assert numbers(await on.stored(T0, kind="other")) == [6]
        assert numbers(await on.stored(T0, queue="slow")) == [5]
        assert numbers(await on.stored(T0, state="waiting", kind="count", queue="default")) == [2, 3]
        [held] = await on.stored(T0, state="running")
        assert (held.id, held.held_ms, held.attempts, held.failed_ms) == (running.id, T0 + MINUTE, 1, None)

    async def test_jobs_come_in_pages(self, on: Stage) -> None:
        """jobs: those with an id greater than `after`, at most `limit`, by id."""
        pushed = await on.store.push([job(n, T0 - n) for n in range(120)], now=T0)
        assert numbers(await on.store.jobs(now=T0)) == list(range(100))
        assert numbers(await on.store.jobs(now=T0, limit=3)) == [0, 1, 2]
        assert numbers(await on.store.jobs(now=T0, limit=3, after=pushed[2].id)) == [3, 4, 5]
        assert numbers(await on.store.jobs(now=T0, after=pushed[117].id)) == [118, 119]
        assert await on.store.jobs(now=T0, after=pushed[-1].id) == []

    @clause(*Keep)
    async def test_jobs_are_shown_as_they_were_pushed(self, on: Stage) -> None:
        """jobs: jobs as they are kept."""
        asks: Asks = {
            "unique_key": "u",
            "alone_key": "a",
            "at_once": 3,
            "options": "{}",
            "queue": "slow",
            "schedule": "s",
        }
        pushed = await on.push(1, T0 + 5, kind="report", carried='{"t": "1"}', **asks)
        [kept] = await on.stored()
        assert {name: getattr(kept, name) for name in asks} == asks
        assert (kept.id, kept.kind, kept.payload, kept.run_ms) == (pushed.id, "report", '{"n": 1}', T0 + 5)
        assert (kept.attempts, kept.held_ms, kept.failed_ms, kept.error) == (0, None, None, None)
        assert kept.carried == {"t": "1"}

    async def test_looking_changes_nothing(self, on: Stage) -> None:
        """lanes, counts, jobs: a look takes no job and ends no hold."""
        await on.push(1)
        claimed = await on.take(T0)
        await on.store.lanes()
        await on.store.counts(T0 + HOUR)
        await on.stored(T0 + HOUR)
        assert await on.store.renew([claimed], now=T0 + 1, until=T0 + HOUR) == [True]

    async def test_open_and_close_may_be_called_again(self, on: Stage) -> None:
        """open: opening an open store does nothing; close: closing a closed one neither; it can be opened again."""
        await on.push(1)
        await on.store.open()
        assert len(await on.stored()) == 1
        store = await on.another()
        await store.close()
        await store.close()
        await store.open()
        found = await on.claim(store=store)
        assert number(found[0]) == 1
        assert await on.settle(Settlement.done(found[0])) == [True]

    async def test_store_objects_on_one_database_see_the_same_jobs(self, on: Stage) -> None:
        """B2: claims of other instances, and their ends, count like one's own."""
        other = await on.another()
        await on.push(1)
        [claimed] = await on.claim(store=other)
        await on.nothing()
        assert await on.retry(claimed, T0, "told by the other")
        [again] = await on.claim(store=other)
        assert (again.attempts, again.error) == (2, "told by the other")

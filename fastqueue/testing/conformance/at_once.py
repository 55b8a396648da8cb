"""Clauses of at once: no more than so many jobs of a kind are held at once."""

from __future__ import annotations

from typing import Any

from fastqueue.job import Claimed
from fastqueue.store import Keep
from fastqueue.testing.conformance.clause import clause
from fastqueue.testing.conformance.stage import DAY, HOUR, MINUTE, T0, Stage, job, number, numbers

__all__ = ["AtOnceClauses"]


class AtOnceClauses:
    @clause(Keep.AT_ONCE)
    async def test_a1_the_limit_holds(self, on: Stage) -> None:
        """A1: never a job with `at_once` while as many of its kind are held."""
        for n in range(4):
            await _push_limited(on, 2, n)
        first = await on.take()
        assert first.at_once == 2
        assert await on.claim()
        await on.nothing()
        assert await on.done(first)
        assert numbers(await on.claim_each()) == [2]

    @clause(Keep.AT_ONCE)
    async def test_a1_the_jobs_taken_by_the_same_call_count(self, on: Stage) -> None:
        """A1: the jobs taken by this same call count."""
        for n in range(5):
            await _push_limited(on, 3, n)
        await on.push(5)
        assert numbers(await on.claim(limit=9)) == [0, 1, 2, 5]
        await on.nothing()

    @clause(Keep.AT_ONCE)
    async def test_a1_a_claim_looks_past_many_jobs_that_must_wait(self, on: Stage) -> None:
        """A1: a job is never kept waiting by jobs before it in line that may not run."""
        await on.store.push([job(n, kind="resize", at_once=1) for n in range(250)], now=T0)
        await on.push(250)
        assert numbers(await on.claim(limit=2)) == [0, 250]

    @clause(Keep.AT_ONCE)
    async def test_a2a_the_next_runs_after_the_first_was_put_back(self, on: Stage) -> None:
        """A2: a job that waits again does not count."""
        first = await _running_and_waiting(on)
        assert await on.retry(first, T0 + HOUR)
        assert number(await on.take()) == 2
        await on.nothing()

    @clause(Keep.AT_ONCE)
    async def test_a2b_the_next_runs_after_the_first_failed(self, on: Stage) -> None:
        """A2, G17: a failed job does not count."""
        first = await _running_and_waiting(on)
        assert await on.fail(first)
        assert number(await on.take()) == 2
        await on.nothing()

    @clause(Keep.AT_ONCE)
    async def test_a2c_a_lost_job_runs_again_before_the_next(self, on: Stage) -> None:
        """A2, G11: a hold that is over does not count; the job waits again at its old place."""
        await _running_and_waiting(on)
        assert number(await on.take(T0 + MINUTE)) == 1
        await on.nothing(T0 + MINUTE)

    @clause(Keep.AT_ONCE)
    async def test_a2_a_job_given_back_does_not_count(self, on: Stage) -> None:
        """A2, G6: a job given back waits, with its limit."""
        first = await _running_and_waiting(on)
        assert await on.give_back(first)
        found = await on.take()
        assert (number(found), found.at_once) == (1, 1)
        await on.nothing()

    @clause(Keep.AT_ONCE)
    async def test_a3_other_kinds_are_free(self, on: Stage) -> None:
        """A3: the limit is one of the kind."""
        await _push_limited(on, 1, 1)
        await _push_limited(on, 1, 2)
        await on.push(3)
        await on.push(4, kind="other", at_once=1)
        assert sorted(numbers(await on.claim_each())) == [1, 3, 4]

    @clause(Keep.AT_ONCE)
    async def test_a4_held_jobs_without_a_limit_count(self, on: Stage) -> None:
        """A4: as many of its kind are held, with or without limits of their own."""
        await on.push(1)
        free = await on.take()
        await on.push(2, at_once=1)
        await on.nothing()
        await on.push(3)
        assert number(await on.take()) == 3
        assert await on.done(free)
        await on.nothing()

    @clause(Keep.AT_ONCE)
    async def test_a4_jobs_without_a_limit_taken_by_the_same_call_count(self, on: Stage) -> None:
        """A4: the jobs taken by this same call count, with or without limits of their own."""
        await on.push(1)
        await on.push(2, at_once=1)
        await on.push(3, at_once=2)
        await on.push(4, at_once=2)
        assert numbers(await on.claim(limit=9)) == [1, 3]

    @clause(Keep.AT_ONCE)
    async def test_g18_each_job_is_judged_by_its_own_number(self, on: Stage) -> None:
        """G18: each job is judged by its own number."""
        for n, at_once in enumerate([1, 1, 3, 2, 3, 3, 0]):
            await _push_limited(on, at_once, n)
        assert numbers(await on.claim(limit=9)) == [0, 2, 4, 6]

    @clause(Keep.AT_ONCE, Keep.ONE_AT_A_TIME)
    async def test_g18_a_job_with_both_limits_waits_for_both(self, on: Stage) -> None:
        """G18, O1: a job may have a number and a key; it waits for both."""
        for n, key in enumerate("aabbc"):
            await on.push(n, kind="resize", at_once=2, alone_key=key)
        claimed = await on.claim(limit=9)
        assert numbers(claimed) == [0, 2]
        assert await on.done(claimed[1])
        assert numbers(await on.claim(limit=9)) == [3]

    @clause(Keep.AT_ONCE, Keep.QUEUES)
    async def test_a1_the_limit_holds_over_all_queues(self, on: Stage) -> None:
        """A1: as many of its kind are held, whatever queues they came from."""
        for n, queue in enumerate(("slow", "quick", "slow", "quick")):
            await _push_limited(on, 3, n, queue=queue)
        assert numbers(await on.claim(limit=9, queues=["quick", "slow"])) == [1, 3, 0]
        assert await on.claim(limit=9) == []

    @clause(Keep.AT_ONCE, "failed")
    async def test_g8_a_job_run_again_keeps_its_limit(self, on: Stage) -> None:
        """G8: limits stay when a failed job is run again."""
        id = await on.failed(1, kind="resize", at_once=1)
        await on.push(2, T0, kind="resize")
        assert await on.failures.run_again([id], at=T0 + 1) == [True]
        assert numbers(await on.claim(T0 + 1, limit=9)) == [2]
        assert number(await on.take(T0 + DAY)) == 2


async def _push_limited(on: Stage, at_once: int, n: int, **asks: Any) -> None:
    await on.push(n, kind="resize", at_once=at_once, **asks)


async def _running_and_waiting(on: Stage) -> Claimed:
    """Job 1 runs and job 2 of its kind waits, of which one runs at once; the first."""
    await _push_limited(on, 1, 1)
    await _push_limited(on, 1, 2)
    first = await on.take()
    assert number(first) == 1
    return first

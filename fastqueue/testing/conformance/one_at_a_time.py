"""Clauses of one at a time: no two jobs of a kind and alone key are held at once."""

from __future__ import annotations

from typing import Any

from fastqueue.job import Claimed
from fastqueue.store import Keep
from fastqueue.testing.conformance.clause import clause
from fastqueue.testing.conformance.stage import HOUR, MINUTE, T0, Asks, Stage, job, number, numbers

__all__ = ["OneAtATimeClauses"]


class OneAtATimeClauses:
    @clause(Keep.ONE_AT_A_TIME)
    async def test_o1_a_job_waits_for_the_running_one_of_its_key(self, on: Stage) -> None:
        """O1: never a job whose (kind, alone_key) a held job has."""
        await _push_alone(on, "a", 1)
        first = await on.take()
        assert first.alone_key == "a"
        await _push_alone(on, "a", 2)
        await on.nothing()
        assert await on.done(first)
        assert number(await on.take()) == 2

    @clause(Keep.ONE_AT_A_TIME)
    async def test_o1_one_claim_takes_one_of_each_key(self, on: Stage) -> None:
        """O1: never two with one (kind, alone_key) in one call: the first in line, and what stands between them."""
        for n, key in enumerate("aababc"):
            await _push_alone(on, key, n)
        await on.push(6)
        assert numbers(await on.claim(limit=9)) == [0, 2, 5, 6]
        await on.nothing()

    @clause(Keep.ONE_AT_A_TIME)
    async def test_o1_a_claim_looks_past_many_jobs_that_must_wait(self, on: Stage) -> None:
        """O1: a job is never kept waiting by others of its lane that may not run."""
        await on.store.push([job(n, alone_key="a") for n in range(250)], now=T0)
        await _push_alone(on, "b", 250)
        assert numbers(await on.claim(limit=2)) == [0, 250]

    @clause(Keep.ONE_AT_A_TIME)
    async def test_o2a_the_next_runs_after_the_first_was_put_back(self, on: Stage) -> None:
        """O2: a job that waits again is no longer in the way."""
        first = await _running_and_waiting(on)
        assert await on.retry(first, T0 + HOUR)
        assert number(await on.take()) == 2
        await on.nothing()

    @clause(Keep.ONE_AT_A_TIME)
    async def test_o2b_the_next_runs_after_the_first_failed(self, on: Stage) -> None:
        """O2, G17: a failed job is no longer in the way."""
        first = await _running_and_waiting(on)
        assert await on.fail(first)
        assert number(await on.take()) == 2
        await on.nothing()

    @clause(Keep.ONE_AT_A_TIME)
    async def test_o2c_a_lost_job_runs_again_before_the_next(self, on: Stage) -> None:
        """O2, G11: a hold that is over is in nobody's way; the job waits again at its old place."""
        await _running_and_waiting(on)
        assert number(await on.take(T0 + MINUTE)) == 1
        await on.nothing(T0 + MINUTE)

    @clause(Keep.ONE_AT_A_TIME)
    async def test_o2c_a_renewed_hold_stays_in_the_way(self, on: Stage) -> None:
        """O2, G11: two claims see each other's holds by time: until the hold's own end."""
        first = await _running_and_waiting(on)
        assert await on.store.renew([first], now=T0, until=T0 + HOUR) == [True]
        await on.nothing(T0 + HOUR - 1)
        assert number(await on.take(T0 + HOUR)) == 1

    @clause(Keep.ONE_AT_A_TIME)
    async def test_o3_others_run_beside(self, on: Stage) -> None:
        """O3: other keys, the same key of another kind, and jobs without a key run beside."""
        await _push_alone(on, "a", 1)
        await on.take()
        await _push_alone(on, "b", 2)
        await _push_alone(on, "a", 3, kind="other")
        await on.push(4)
        assert sorted(numbers(await on.claim_each())) == [2, 3, 4]

    @clause(Keep.ONE_AT_A_TIME)
    async def test_o3_keys_are_compared_letter_by_letter(self, on: Stage) -> None:
        """O3: keys are the same only when every letter is."""
        for n, key in enumerate(["a", "A", "a ", "\u00e1", "\u00df", "ss", "", "it's"]):
            await _push_alone(on, key, n)
        assert numbers(await on.claim(limit=9)) == list(range(8))

    @clause(Keep.ONE_AT_A_TIME)
    async def test_o4_a_job_put_back_keeps_its_key(self, on: Stage) -> None:
        """O4: the alone key stays for life, through every settlement."""
        await _push_alone(on, "a", 1)
        assert await on.retry(await on.take(), T0)
        await _push_alone(on, "a", 2)
        assert len(await on.claim_each(limit=2)) == 1

    @clause(Keep.ONE_AT_A_TIME)
    async def test_o4_a_job_given_back_keeps_its_key(self, on: Stage) -> None:
        """O4, G6: the alone key stays for life."""
        await _push_alone(on, "a", 1)
        assert await on.give_back(await on.take())
        await _push_alone(on, "a", 2)
        assert numbers(await on.claim_each(limit=2)) == [1]

    @clause(Keep.ONE_AT_A_TIME, "failed")
    async def test_g7_a_job_run_again_keeps_its_alone_key(self, on: Stage) -> None:
        """G7: the alone key survives a failure and the run after it."""
        id = await on.failed(1, alone_key="a")
        await _push_alone(on, "a", 2)
        assert await on.failures.run_again([id], at=T0) == [True]
        assert numbers(await on.claim_each(limit=2)) == [1]

    @clause(Keep.ONE_AT_A_TIME, Keep.KEYS, Keep.LATEST, "schedules")
    async def test_o6_every_push_keeps_the_alone_key(self, on: Stage) -> None:
        """O6, G2: what limits a job is kept by a push of any sort."""
        await on.push(1, kind="report", unique_key="a", alone_key="a")
        running = await on.take()
        run = job(2, kind="report", unique_key="a", alone_key="a", schedule="report")
        assert (await on.schedules.push_run("report", run, now=T0)).pushed
        key: Asks = {"kind": "report", "unique_key": "b", "alone_key": "b", "latest": True}
        await on.push(3, **key)
        assert number(await on.take()) == 3
        assert (await on.push(4, **key)).new
        await on.nothing()
        assert await on.done(running)
        assert number(await on.take()) == 2

    @clause(Keep.ONE_AT_A_TIME, Keep.QUEUES)
    async def test_o1_a_key_counts_over_all_queues(self, on: Stage) -> None:
        """O1: never a job whose (kind, alone_key) a held job has, whatever queue that one came from."""
        await _push_alone(on, "a", 1, queue="slow")
        await _push_alone(on, "a", 2, queue="quick")
        assert numbers(await on.claim(limit=9, queues=["quick", "slow"])) == [2]


async def _push_alone(on: Stage, key: str, n: int, **asks: Any) -> None:
    assert (await on.push(n, alone_key=key, **asks)).new


async def _running_and_waiting(on: Stage) -> Claimed:
    """Job 1 runs and job 2 of its key waits; the first."""
    await _push_alone(on, "a", 1)
    first = await on.take()
    await _push_alone(on, "a", 2)
    return first

"""Clauses of a claim's end: late calls after the attempt number repeats, renewing, giving back, cancelled callers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from fastqueue.job import Claimed
from fastqueue.outcome import Settlement
from fastqueue.testing.conformance.clause import clause
from fastqueue.testing.conformance.stage import DAY, HOUR, MINUTE, T0, Stage, job, number, numbers

__all__ = ["TokenClauses"]


class TokenClauses:
    async def test_g9_a_late_settle_after_a_give_back_changes_nothing(self, on: Stage) -> None:
        """G9: a late one (other token) answers False, although the job has as many attempts as its claim had."""
        await on.push(1)
        late = await on.take(T0)
        assert await on.give_back(await on.take(T0 + MINUTE))
        await _late_calls_change_nothing(on, late)

    @clause("holds")
    async def test_g9_a_late_settle_after_a_hold_back_changes_nothing(self, on: Stage) -> None:
        """G9: a late one (other token) answers False, although the job has as many attempts as its claim had."""
        await on.push(1)
        late = await on.take(T0)
        assert await on.holds.hold_back(await on.take(T0 + MINUTE), until=T0 + MINUTE)
        await _late_calls_change_nothing(on, late)

    @clause("failed")
    async def test_g9_a_late_settle_after_a_job_was_run_again_changes_nothing(self, on: Stage) -> None:
        """G9: a late one (other token) answers False, although the job has as many attempts as its claim had."""
        await on.push(1)
        late = await on.take(T0)
        assert await on.fail(await on.take(T0 + MINUTE), T0 + MINUTE)
        assert await on.failures.run_again([late.id], at=T0) == [True]
        await _late_calls_change_nothing(on, late)
        current = await on.take(T0 + HOUR)
        assert current.attempts == late.attempts
        await _late_calls_change_nothing(on, late)
        assert await on.done(current)

    async def test_g9_the_claim_of_another_job_settles_nothing(self, on: Stage) -> None:
        """G9: a settlement is told by job and token; another claim's token is a late one."""
        await on.push(1)
        await on.push(2)
        first, second = await on.take(), await on.take()
        swapped = Settlement(first.id, second.token, Settlement.done(first).ending)
        assert await on.settle(swapped) == [False]
        assert await on.settle(Settlement.done(first), Settlement.done(second)) == [True, True]

    async def test_g9_two_claims_of_one_job_are_told_apart_in_one_call(self, on: Stage) -> None:
        """G9: answer for each whether its claim still had the job, also when an earlier claim of it is told too."""
        await on.push(1)
        late, current = await on.take(T0), await on.take(T0 + MINUTE)
        assert await on.store.renew([late, current], now=T0 + MINUTE, until=T0 + HOUR) == [False, True]
        assert await on.store.give_back([late, current]) == [False, True]
        again = await on.take(T0 + MINUTE)
        assert again.attempts == 2
        assert await on.settle(Settlement.done(late), Settlement.done(again), Settlement.done(current)) == [
            False,
            True,
            False,
        ]

    async def test_h1_a_job_given_back_waits_as_it_was(self, on: Stage) -> None:
        """H1: the job waits again as it was: its place, run_at, error, interruptions, one attempt less."""
        await on.push(1)
        await on.push(2)
        assert await on.settle(Settlement.put_back(await on.take(), at=T0, error="stopped", free=False)) == [True]

        assert await on.give_back(await on.take())

        found = await on.take()
        assert (number(found), found.run_at, found.lost) == (1, T0, False)
        assert (found.attempts, found.interruptions, found.error) == (2, 1, "stopped")

    async def test_h4_a_late_give_back_answers_false(self, on: Stage) -> None:
        """H4: a late one answers False, and changes nothing."""
        await on.push(1)
        late = await on.take(T0)
        current = await on.take(T0 + MINUTE)
        assert not await on.give_back(late)
        await on.nothing(T0 + MINUTE)
        assert await on.done(current)
        assert not await on.give_back(current)

    async def test_h4_give_backs_are_answered_one_by_one(self, on: Stage) -> None:
        """H4: a late one answers False; those beside it are given back."""
        await on.store.push([job(n) for n in range(3)], now=T0)
        claimed = await on.claim(limit=3)
        assert await on.done(claimed[1])
        assert await on.store.give_back(claimed) == [True, False, True]
        assert numbers(await on.claim(limit=3)) == [0, 2]

    async def test_renew_holds_a_running_job_for_longer(self, on: Stage) -> None:
        """renew: hold running jobs for longer: until `until`."""
        await on.push(1)
        claimed = await on.take(T0)
        assert await on.store.renew([claimed], now=T0 + 30_000, until=T0 + HOUR) == [True]
        await on.nothing(T0 + HOUR - 1)
        found = await on.take(T0 + HOUR)
        assert (found.lost, found.attempts) == (True, 2)

    async def test_renew_refuses_a_hold_that_is_over(self, on: Stage) -> None:
        """renew: a hold that is over at `now` is not renewed: others may count on its end already."""
        await on.push(1)
        claimed = await on.take(T0)
        assert await on.store.renew([claimed], now=T0 + MINUTE, until=T0 + HOUR) == [False]
        current = await on.take(T0 + MINUTE)
        assert await on.store.renew([claimed], now=T0 + MINUTE, until=T0 + HOUR) == [False]
        assert await on.store.renew([current], now=T0 + 2 * MINUTE - 1, until=T0 + HOUR) == [True]

    async def test_renewals_are_answered_one_by_one(self, on: Stage) -> None:
        """renew: answer for each whether it is still held by its claim."""
        await on.store.push([job(n, hold_ms=(n + 1) * MINUTE) for n in range(4)], now=T0)
        claimed = await on.claim(limit=4)
        assert await on.done(claimed[2])
        renewed = await on.store.renew(claimed, now=T0 + MINUTE, until=T0 + HOUR)
        assert renewed == [False, True, False, True]
        assert numbers(await on.claim(T0 + 30 * MINUTE, limit=9)) == [0]

    async def test_g21_a_settle_whose_caller_is_cancelled_still_happens_when_shielded(self, on: Stage) -> None:
        """G21: a store call is safe to finish after the cancellation of the task that made it."""
        await on.push(1)
        claimed = await on.take()
        settle = asyncio.ensure_future(on.done(claimed))

        async def shielded() -> bool:
            return await asyncio.shield(settle)

        await _cancelled(shielded(), after=1)

        assert await settle
        await on.nothing(T0 + DAY)

    async def test_g21_a_cancelled_call_happens_wholly_or_not_at_all(self, on: Stage) -> None:
        """G21: every verb does all of what it was asked or none of it, also when its task is cancelled."""
        for after in range(16):
            at = T0 + after * DAY
            await _cancelled(on.store.push([job(after, at), job(after, at)], now=at), after)
            kept = await on.stored(at)
            assert len(kept) in (0, 2)
            await on.store.push([job(after, at)] * (2 - len(kept)), now=at)

            await _cancelled(on.claim(at, limit=2), after)
            states = [each.state(at) for each in await on.stored(at)]
            assert states in (["running"] * 2, ["waiting"] * 2)

            jobs = await on.claim(at + HOUR, limit=2)
            assert len(jobs) == 2
            await _cancelled(on.settle(*map(Settlement.done, jobs)), after)
            left = len(await on.stored(at))
            assert left in (0, 2)
            assert await on.settle(*map(Settlement.done, jobs)) == [left == 2] * 2


async def _late_calls_change_nothing(on: Stage, late: Claimed) -> None:
    before = await on.stored()
    assert not await on.done(late)
    assert not await on.retry(late, T0 + DAY, "late")
    assert not await on.fail(late, T0 + DAY, "late")
    assert not await on.give_back(late)
    assert await on.store.renew([late], now=T0, until=T0 + DAY) == [False]
    assert await on.stored() == before


async def _cancelled(call: Coroutine[Any, Any, Any], after: int) -> None:
    """Start a call, and cancel it after some turns of the loop."""
    task = asyncio.ensure_future(call)
    for _ in range(after):
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task

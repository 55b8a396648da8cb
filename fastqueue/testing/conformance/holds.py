"""Clauses of holding back: a job goes back as it was, and its kind waits."""

from __future__ import annotations

from fastqueue.store import Keep
from fastqueue.testing.conformance.clause import clause
from fastqueue.testing.conformance.stage import DAY, HOUR, MINUTE, SECOND, T0, Stage, number, numbers

__all__ = ["HoldClauses"]


class HoldClauses:
    @clause("holds")
    async def test_h1_a_job_held_back_waits_as_it_was(self, on: Stage) -> None:
        """H1: the job waits again as it was; the claim that was refused is no attempt."""
        await on.push(1)
        first = await on.take(T0)
        assert await on.holds.hold_back(first, until=T0 + HOUR)
        await on.nothing(T0 + 30 * MINUTE)
        await on.nothing(T0 + HOUR - 1)
        found = await on.take(T0 + HOUR)
        assert (found.id, found.attempts, found.run_at, found.lost) == (first.id, 1, T0, False)

    @clause("holds")
    async def test_h2_the_kind_is_held_and_the_job_keeps_its_place(self, on: Stage) -> None:
        """H2: never a kind held back beyond `now`; other kinds run."""
        await on.push(1)
        await on.push(2)
        await on.push(3, kind="other")
        assert await on.holds.hold_back(await on.take(T0), until=T0 + HOUR)
        assert number(await on.take(T0)) == 3
        await on.nothing(T0)
        assert numbers(await on.claim(T0 + HOUR, limit=9)) == [1, 2, 3]

    @clause("holds", Keep.ONE_AT_A_TIME, Keep.AT_ONCE)
    async def test_h2_a_held_kind_waits_whatever_limits_its_jobs(self, on: Stage) -> None:
        """H2: never a kind held back beyond `now`, in any of its lanes."""
        await on.push(1)
        await on.push(2, at_once=9)
        await on.push(3, alone_key="a")
        assert await on.holds.hold_back(await on.take(T0), until=T0 + HOUR)
        await on.nothing(T0 + HOUR - 1)
        assert numbers(await on.claim(T0 + HOUR, limit=9)) == [1, 2, 3]

    @clause("holds", Keep.KEYS)
    async def test_h3_a_job_held_back_takes_its_key_again(self, on: Stage) -> None:
        """H3: it takes its unique key again, unless another job waits with it by now."""
        await on.push(1, kind="report", unique_key="a")
        assert await on.holds.hold_back(await on.take(), until=T0)
        assert not (await on.push(2, kind="report", unique_key="a")).new
        claimed = await on.take()
        assert (await on.push(3, kind="report", unique_key="a")).new
        assert await on.holds.hold_back(claimed, until=T0)
        assert not (await on.push(4, kind="report", unique_key="a")).new
        assert numbers(await on.claim_each(T0 + DAY)) == [1, 3]

    @clause("holds")
    async def test_h4_a_late_hold_back_leaves_the_job(self, on: Stage) -> None:
        """H4: a late one answers False."""
        await on.push(1)
        late = await on.take(T0)
        current = await on.take(T0 + MINUTE)
        assert not await on.holds.hold_back(late, until=T0 + MINUTE)
        assert [each.attempts for each in await on.stored(T0 + MINUTE)] == [2]
        assert await on.done(current)
        await on.nothing(T0 + DAY)

    @clause("holds")
    async def test_g5_the_moment_of_a_kind_only_moves_forward(self, on: Stage) -> None:
        """G5: a kind's moment only moves forward."""
        for n in range(3):
            await on.push(n)
        first, second, third = await on.claim(limit=3)
        assert await on.holds.hold_back(first, until=T0 + HOUR)
        assert await on.holds.hold_back(second, until=T0 + MINUTE)
        await on.nothing(T0 + HOUR - 1, kinds=["count"])
        assert await on.holds.hold_back(third, until=T0 + 2 * HOUR)
        await on.nothing(T0 + 2 * HOUR - 1)
        assert numbers(await on.claim(T0 + 2 * HOUR, limit=9)) == [0, 1, 2]

    @clause("holds", Keep.AT_ONCE, Keep.ONE_AT_A_TIME, Keep.CARRIED)
    async def test_g6_a_job_held_back_keeps_all_it_has(self, on: Stage) -> None:
        """G6: the job waits again as it was: its place, run_at, error, interruptions, one attempt less."""
        await on.push(1, at_once=2, alone_key="a", carried='{"tenant": "acme"}')
        assert await on.retry(await on.take(), T0 + SECOND, "first error")
        before = await on.stored()
        assert await on.holds.hold_back(await on.take(T0 + SECOND), until=T0 + MINUTE)
        assert await on.stored() == before
        found = await on.take(T0 + MINUTE)
        assert (found.run_at, found.attempts, found.error) == (T0 + SECOND, 2, "first error")
        assert (found.at_once, found.alone_key, found.carried) == (2, "a", '{"tenant": "acme"}')

    @clause("holds")
    async def test_g6_a_late_hold_back_still_holds_the_kind(self, on: Stage) -> None:
        """G6: a late call leaves the job, and holds the kind all the same."""
        await on.push(1)
        late = await on.take(T0)
        assert await on.done(await on.take(T0 + MINUTE))
        await on.push(2)
        assert not await on.holds.hold_back(late, until=T0 + HOUR)
        await on.nothing(T0 + HOUR - 1)
        assert number(await on.take(T0 + HOUR)) == 2

    @clause("holds")
    async def test_g12_a_job_due_later_waits_for_the_later_of_both_times(self, on: Stage) -> None:
        """G12: a job held back waits for its kind's moment and for its own."""
        await on.push(1)
        await on.push(2, T0 + 2 * HOUR)
        assert await on.holds.hold_back(await on.take(T0), until=T0 + HOUR)
        assert numbers(await on.claim_each(T0 + HOUR)) == [1]
        assert numbers(await on.claim_each(T0 + HOUR + 30 * SECOND)) == []
        assert 2 in numbers(await on.claim_each(T0 + 2 * HOUR))

    @clause("holds")
    async def test_h5_a_claim_tells_when_a_kind_is_held_back_no_longer(self, on: Stage) -> None:
        """H5: its jobs come due no sooner than the kind's moment, also in a claim's `next_due`."""
        await on.push(1)
        assert await on.holds.hold_back(await on.take(T0), until=T0 + HOUR)
        assert await on.next_due(T0) == T0 + HOUR
        await on.push(2, T0 + MINUTE, kind="other")
        assert await on.next_due(T0) == T0 + MINUTE
        assert await on.holds.hold_back(await on.take(T0 + MINUTE), until=T0 + 2 * HOUR)
        await on.push(3, T0 + 3 * HOUR, kind="report")
        assert await on.next_due(T0 + MINUTE) == T0 + HOUR

    @clause("holds")
    async def test_h5_a_job_due_later_than_its_kind_comes_due_at_its_own_time(self, on: Stage) -> None:
        """H5: its jobs come due no sooner, also in a claim's `next_due`."""
        await on.push(1)
        late = await on.take(T0)
        assert await on.done(await on.take(T0 + MINUTE))
        await on.push(2, T0 + 2 * HOUR)
        assert not await on.holds.hold_back(late, until=T0 + HOUR)
        assert await on.next_due(T0 + MINUTE) == T0 + 2 * HOUR

    @clause("holds")
    async def test_x4_prune_forgets_the_holds_that_are_over(self, on: Stage) -> None:
        """X4: kinds held back until `now` or earlier are forgotten; the others stay held."""
        await on.push(1)
        await on.push(2, kind="other")
        first, second = await on.claim(limit=2)
        assert await on.holds.hold_back(first, until=T0 + MINUTE)
        assert await on.holds.hold_back(second, until=T0 + HOUR)
        assert await on.store.prune(T0 + MINUTE, failed_before=T0) == 0
        assert numbers(await on.claim(T0 + MINUTE, limit=9)) == [1]
        await on.nothing(T0 + HOUR - 1, kinds=["other"])
        assert number(await on.take(T0 + HOUR, kinds=["other"])) == 2

    @clause("holds")
    async def test_x4_a_hold_that_was_pruned_can_begin_anew(self, on: Stage) -> None:
        """X4: what prune forgets does not come back, nor stand in the way of a new one."""
        await on.push(1)
        assert await on.holds.hold_back(await on.take(T0), until=T0 + HOUR)
        await on.store.prune(T0 + HOUR, failed_before=T0)
        assert await on.holds.hold_back(await on.take(T0 + HOUR), until=T0 + HOUR + MINUTE)
        await on.nothing(T0 + HOUR)
        assert await on.take(T0 + HOUR + MINUTE)

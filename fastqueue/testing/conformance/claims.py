"""Clauses of push, claim and settle that bind every store."""

from __future__ import annotations

from contextlib import suppress

from fastqueue.outcome import Settlement
from fastqueue.store import Keep
from fastqueue.testing.conformance.clause import clause
from fastqueue.testing.conformance.stage import DAY, HOUR, MINUTE, SECOND, T0, Asks, Stage, job, number, numbers

__all__ = ["ClaimClauses"]


class ClaimClauses:
    async def test_b1_a_job_is_kept_as_given_and_claimed_when_due(self, on: Stage) -> None:
        """B1: only a job with `run_at <= now`, kept with its kind, payload and run_at as given, no error; then held."""
        pushed = await on.push(1, T0 + 10 * SECOND)
        assert pushed.new
        await on.nothing(T0)

        found = await on.take(T0 + 10 * SECOND)

        assert (pushed.id, "count", '{"n": 1}') == (found.id, found.kind, found.payload)
        assert (found.run_at, found.attempts, found.error, found.lost) == (T0 + 10 * SECOND, 1, None, False)
        assert found.held_until == T0 + 70 * SECOND
        await on.nothing(T0 + 59 * SECOND)

    async def test_b2_a_late_settle_changes_nothing(self, on: Stage) -> None:
        """B2: a hold is over at exactly `held_until`; a late settle answers False, changes nothing, never raises."""
        await on.push(1)
        first = await on.take(T0)
        second = await on.take(T0 + MINUTE)
        assert (first.id, 2, True) == (second.id, second.attempts, second.lost)

        assert not await on.retry(first, T0 + HOUR, "late")
        assert not await on.fail(first, T0 + HOUR, "late")
        assert not await on.done(first)

        await on.nothing(T0 + 90 * SECOND)
        third = await on.take(T0 + 2 * MINUTE)
        assert (third.attempts, third.run_at, third.error) == (3, T0, None)

    async def test_b2_a_claim_whose_time_is_up_may_settle_until_another_has_the_job(self, on: Stage) -> None:
        """B2: a claim whose time was up but whose job nobody else has claimed may still settle."""
        await on.push(1)
        late = await on.take(T0)
        await on.push(2, T0 + DAY)
        await on.nothing(T0 + 5 * MINUTE, kinds=["other"])  # a claim of others sees that the hold is over

        assert await on.done(late)

        assert numbers(await on.claim_each(T0 + DAY)) == [2]

    async def test_b2_a_lost_job_keeps_its_place(self, on: Stage) -> None:
        """B2: a job whose hold is over waits again at its old place, and the claim that takes it says so (`lost`)."""
        for n in (1, 2, 3):
            await on.push(n)
        assert numbers(await on.claim(T0)) == [1]

        found = await on.claim(T0 + MINUTE, limit=3)

        assert [(number(each), each.lost) for each in found] == [(1, True), (2, False), (3, False)]

    async def test_b3_done_removes_the_job(self, on: Stage) -> None:
        """B3: GONE removes the job."""
        await on.push(1)
        assert await on.done(await on.take())
        await on.nothing(T0 + DAY)
        assert await on.stored() == []

    async def test_b4_a_retry_waits_and_keeps_its_error(self, on: Stage) -> None:
        """B4: WAITS puts it back, due at `at`, with error, attempts and interruptions as given."""
        await on.push(1)
        error = "ConnectionError: \u00abno route\u00bb \U0001f6ab 'quoted' \\ %s :name\n  line two"
        assert await on.retry(await on.take(), T0 + 10 * MINUTE, error)
        await on.nothing(T0 + 9 * MINUTE)

        found = await on.take(T0 + 10 * MINUTE)

        assert (2, T0 + 10 * MINUTE, error, False) == (found.attempts, found.run_at, found.error, found.lost)

    async def test_b4_a_job_put_back_by_a_stop_has_the_attempts_and_interruptions_it_is_told(self, on: Stage) -> None:
        """B4: WAITS puts it back, due at `at`, with error, attempts and interruptions as given."""
        await on.push(1)
        for turn in (1, 2):
            claimed = await on.take()
            assert (1, turn - 1) == (claimed.attempts, claimed.interruptions)
            assert await on.settle(Settlement.put_back(claimed, at=T0, error="stopped", free=True)) == [True]
        claimed = await on.take()
        assert (claimed.attempts, claimed.interruptions) == (1, 2)
        assert await on.retry(claimed, T0, None)
        claimed = await on.take()
        assert (claimed.attempts, claimed.interruptions, claimed.error) == (2, 0, None)

    async def test_b5_a_failed_job_is_never_claimed(self, on: Stage) -> None:
        """B5: FAILED keeps it where no claim finds it, with the moment and the error."""
        id = await on.failed(1, error="no such mailbox", at=T0 + SECOND)
        await on.nothing(T0 + DAY)
        [kept] = await on.stored()
        assert (id, "no such mailbox", T0 + SECOND, 1) == (kept.id, kept.error, kept.failed_ms, kept.attempts)

    async def test_b6_the_soonest_due_comes_first(self, on: Stage) -> None:
        """B6: by (run_at, id)."""
        for n in (3, 1, 2):
            await on.push(n, T0 + n * SECOND)
        assert numbers(await on.claim_each(T0 + HOUR)) == [1, 2, 3]

    async def test_b6_one_claim_takes_the_soonest_in_order(self, on: Stage) -> None:
        """B6, D17: by (run_at, id); None takes every queue as one line, whatever limits the jobs have."""
        await on.store.push(
            [job(n, T0 + n * SECOND, kind=("count", "other")[n % 2]) for n in (5, 3, 6, 1, 4, 2)], now=T0
        )
        assert numbers(await on.claim(T0 + HOUR, limit=4)) == [1, 2, 3, 4]
        assert numbers(await on.claim(T0 + HOUR, limit=4)) == [5, 6]

    @clause(Keep.AT_ONCE, Keep.ONE_AT_A_TIME)
    async def test_b6_jobs_of_all_lanes_are_one_line(self, on: Stage) -> None:
        """B6: by (run_at, id), across kinds and across what limits them."""
        asks: tuple[Asks, ...] = (
            {},
            {"at_once": 9},
            {"alone_key": "a"},
            {"alone_key": "b", "at_once": 9},
            {"kind": "other"},
        )
        for n in (4, 2, 0, 3, 1):
            await on.push(n, T0 + n, **asks[n])
        assert numbers(await on.claim(T0 + HOUR, limit=9)) == [0, 1, 2, 3, 4]

    async def test_g1_ties_are_claimed_in_the_order_of_their_push(self, on: Stage) -> None:
        """G1: of jobs due at one moment, the one pushed first has the smaller id and is claimed first."""
        first = await on.push(0)
        pushed = await on.store.push([job(n) for n in range(1, 40)], now=T0)
        ids = [first.id, *(each.id for each in pushed)]
        assert sorted(set(ids)) == ids
        found = await on.claim(T0, limit=25) + await on.claim(T0, limit=25)
        assert list(range(40)) == numbers(found)
        assert ids == [each.id for each in found]

    async def test_g16_milliseconds_are_kept(self, on: Stage) -> None:
        """G16: only a job with `run_at <= now`, to the millisecond; held until `now` and its own `hold_ms`."""
        await on.push(1, T0 + 7, hold_ms=1_003)
        await on.nothing(T0 + 6)
        found = await on.take(T0 + 7)
        assert (found.run_at, found.held_until) == (T0 + 7, T0 + 1_010)
        await on.nothing(T0 + 1_009)
        assert await on.take(T0 + 1_010)

    @clause(Keep.TIMES)
    async def test_b1_each_job_is_held_for_its_own_time(self, on: Stage) -> None:
        """B1: held until `now` and its own `hold_ms`."""
        await on.push(1, hold_ms=30 * SECOND)
        await on.push(2, hold_ms=2 * HOUR)
        found = await on.claim(limit=2)
        assert [(each.hold_ms, each.held_until) for each in found] == [
            (30 * SECOND, T0 + 30 * SECOND),
            (2 * HOUR, T0 + 2 * HOUR),
        ]
        assert numbers(await on.claim_each(T0 + 30 * SECOND)) == [1]
        assert numbers(await on.claim_each(T0 + 2 * HOUR - 1)) == [1]
        assert numbers(await on.claim_each(T0 + 2 * HOUR)) == [2]

    async def test_d17_unknown_kinds_stay_as_they_are(self, on: Stage) -> None:
        """D17: jobs of other kinds stay as they are."""
        await on.push(1, kind="of another instance")
        await on.push(2)
        assert numbers(await on.claim_each(T0 + DAY, limit=10)) == [2]
        await on.nothing(T0 + DAY, kinds=[])
        [kept] = await on.stored(T0, kind="of another instance")
        assert (kept.attempts, kept.state(T0)) == (0, "waiting")
        assert numbers(await on.claim_each(T0 + DAY, kinds=["of another instance"])) == [1]

    @clause(Keep.QUEUES)
    async def test_d17_queues_are_taken_in_the_order_named(self, on: Stage) -> None:
        """D17: with `queues` the first named comes before the second, whatever their times; others stay."""
        for n, queue in enumerate(("slow", "quick", "default", "quick", "slow")):
            await on.push(n, T0 - n, queue=queue)
        assert numbers(await on.claim(limit=9, queues=["quick", "slow"])) == [3, 1, 4, 0]
        assert await on.claim(limit=9, queues=["quick", "slow", "nameless"]) == []
        [found] = await on.claim()
        assert (number(found), found.queue) == (2, "default")

    @clause(Keep.QUEUES)
    async def test_d17_a_full_claim_stops_in_the_first_queue(self, on: Stage) -> None:
        """D17: with `queues` the first named comes before the second, and `limit` is for all of them."""
        for n in range(5):
            await on.push(n, T0 - n, queue=("quick", "slow")[n % 2])
        assert numbers(await on.claim(limit=2, queues=["slow", "quick"])) == [3, 1]
        await on.push(5, queue="slow")
        assert numbers(await on.claim(limit=3, queues=["slow", "quick"])) == [5, 4, 2]

    @clause(Keep.QUEUES)
    async def test_d17_no_queues_named_is_one_line_over_all(self, on: Stage) -> None:
        """D17: None takes every queue as one line."""
        for n, queue in enumerate(("slow", "quick", "default")):
            await on.push(n, T0 - n, queue=queue)
        assert numbers(await on.claim(limit=9)) == [2, 1, 0]

    async def test_g15_what_a_claim_hands_out_is_a_copy(self, on: Stage) -> None:
        """G15: each claim hands out what is kept, whatever became of what an earlier one handed out."""
        await on.push(1)
        first = await on.take(T0)
        with suppress(AttributeError):  # a tuple cannot be changed at all
            object.__setattr__(first, "payload", "changed")
        again = await on.take(T0 + MINUTE)
        assert (first.payload, again.payload) == ('{"n": 1}', '{"n": 1}')

    async def test_g10_a_settle_of_a_job_that_is_gone_or_failed_answers_false(self, on: Stage) -> None:
        """G10: a late one (the job is gone or failed) answers False, changes nothing and never raises."""
        await on.push(1)
        await on.push(2)
        gone, failed = await on.take(), await on.take()
        assert await on.done(gone)
        assert await on.fail(failed, T0, "first")
        for claimed in (gone, failed):
            assert not await on.done(claimed)
            assert not await on.retry(claimed, T0, "second")
            assert not await on.fail(claimed, T0 + HOUR, "second")
            assert not await on.give_back(claimed)
            assert await on.store.renew([claimed], now=T0, until=T0 + HOUR) == [False]
        [kept] = await on.stored()
        assert (number(kept), kept.error, kept.failed_ms) == (2, "first", T0)

    async def test_b2_settlements_are_answered_one_by_one(self, on: Stage) -> None:
        """B2: each is told apart: late ones among the others answer False and hinder none."""
        await on.store.push([job(n) for n in range(6)], now=T0)
        claimed = await on.claim(limit=6)
        assert await on.done(claimed[1])
        answers = await on.settle(
            Settlement.done(claimed[0]),
            Settlement.done(claimed[1]),
            Settlement.retry(claimed[2], at=T0 + 1, error="two"),
            Settlement(id=claimed[3].id, token=claimed[3].token - 1, ending=Settlement.done(claimed[3]).ending),
            Settlement.fail(claimed[4], at=T0 + 2, error="four"),
            Settlement(id=999_999_999, token=claimed[5].token, ending=Settlement.done(claimed[5]).ending),
        )
        assert answers == [True, False, True, False, True, False]
        assert [(number(each), each.state(T0 + 1)) for each in await on.stored()] == [
            (2, "waiting"),
            (3, "running"),
            (4, "failed"),
            (5, "running"),
        ]

    async def test_b1_nothing_asked_is_nothing_done(self, on: Stage) -> None:
        """B1: every verb takes many at once; none is many too."""
        assert await on.store.push([], now=T0) == []
        assert await on.settle() == []
        assert await on.store.give_back([]) == []
        assert await on.store.renew([], now=T0, until=T0 + HOUR) == []
        assert await on.stored() == []

    async def test_b1_an_early_hint_names_the_next_job_due(self, on: Stage) -> None:
        """B1: `next_due` is the earliest moment at which a waiting job comes due, or None: unknown; never later."""
        for seconds in (20, 10, 30):
            await on.push(seconds, T0 + seconds * SECOND)
        assert await on.next_due(T0) in (None, T0 + 10 * SECOND)

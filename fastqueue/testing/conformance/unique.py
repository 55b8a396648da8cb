"""Clauses of unique keys: of jobs of one kind and key, one waits."""

from __future__ import annotations

from fastqueue.outcome import Settlement
from fastqueue.store import Keep
from fastqueue.testing.conformance.clause import clause
from fastqueue.testing.conformance.stage import DAY, HOUR, MINUTE, T0, Stage, job, number, numbers

__all__ = ["UniqueClauses"]


class UniqueClauses:
    @clause(Keep.KEYS)
    async def test_u1_a_key_waits_once_for_each_kind(self, on: Stage) -> None:
        """U1: a job is kept only when none of its kind waits with that key; the answer is the waiting job's id."""
        first = await on.push(1, unique_key="a")
        second = await on.push(2, T0 - HOUR, unique_key="a")
        assert (first.new, second.new, second.id) == (True, False, first.id)
        assert (await on.push(3, unique_key="b")).new
        assert (await on.push(4, kind="other", unique_key="a")).new
        found = await on.claim_each()
        assert sorted(numbers(found)) == [1, 3, 4]
        assert {each.run_at for each in found} == {T0}

    @clause(Keep.KEYS)
    async def test_u1_of_two_in_one_call_the_first_is_kept(self, on: Stage) -> None:
        """U1: of two in one call the first is kept; the others of the call are kept all the same."""
        waiting = await on.push(0, unique_key="w")
        pushed = await on.store.push(
            [
                job(1, unique_key="a"),
                job(2),
                job(3, unique_key="a"),
                job(4, unique_key="w"),
                job(5, unique_key="b"),
                job(6, kind="other", unique_key="a"),
                job(7, unique_key="a"),
            ],
            now=T0,
        )
        assert [each.new for each in pushed] == [True, True, False, False, True, True, False]
        assert (pushed[2].id, pushed[6].id, pushed[3].id) == (pushed[0].id, pushed[0].id, waiting.id)
        assert numbers(await on.claim(limit=9)) == [0, 1, 2, 5, 6]

    @clause(Keep.KEYS)
    async def test_u1_a_key_is_compared_letter_by_letter(self, on: Stage) -> None:
        """U1: keys are the same only when every letter is: case, accents, blanks at the end count."""
        keys = ["a", "A", "a ", " a", "\u00e1", "a\u0301", "\u00df", "ss", "", "it's", 'a"b', "\\", "%", "\U0001f40d"]
        assert [(await on.push(unique_key=key)).new for key in keys] == [True] * len(keys)
        assert [(await on.push(unique_key=key)).new for key in keys] == [False] * len(keys)
        assert [each.unique_key for each in await on.claim(limit=99)] == keys

    @clause(Keep.KEYS)
    async def test_u2_a_claim_lets_the_key_go_and_a_retry_does_not_take_it_again(self, on: Stage) -> None:
        """U2: the claim lets the job's unique key go, and tells it; none of the settlements takes it again."""
        await on.push(1, unique_key="a")
        first = await on.take()
        assert first.unique_key == "a"
        assert (await on.push(2, unique_key="a")).new
        assert await on.retry(first, T0)
        assert not (await on.push(3, unique_key="a")).new
        assert [(number(each), each.unique_key) for each in await on.claim_each(T0 + DAY)] == [(1, None), (2, "a")]

    @clause(Keep.KEYS)
    async def test_u2_a_lost_job_has_no_key(self, on: Stage) -> None:
        """U2: the claim lets the key go for good, also when its hold runs out."""
        await on.push(1, unique_key="a")
        await on.take(T0)
        assert (await on.push(2, unique_key="a")).new
        assert [(number(each), each.unique_key) for each in await on.claim_each(T0 + MINUTE)] == [(1, None), (2, "a")]

    @clause(Keep.KEYS)
    async def test_u3_a_failed_job_has_no_key(self, on: Stage) -> None:
        """U3: FAILED does not take the unique key again."""
        await on.failed(1, unique_key="a")
        assert (await on.push(2, unique_key="a")).new

    @clause(Keep.KEYS)
    async def test_g7_no_settlement_takes_the_key_again(self, on: Stage) -> None:
        """G7: none of them takes the unique key again, though it is free."""
        await on.push(1, unique_key="a")
        assert await on.retry(await on.take(), T0)
        assert await on.settle(Settlement.put_back(await on.take(), at=T0, error="stopped", free=True)) == [True]
        assert [each.unique_key for each in await on.stored()] == [None]
        assert (await on.push(2, unique_key="a")).new

    @clause(Keep.KEYS, "failed")
    async def test_g7_a_job_run_again_has_no_key(self, on: Stage) -> None:
        """G7: the unique key is not taken again."""
        id = await on.failed(1, unique_key="a")
        assert await on.failures.run_again([id], at=T0) == [True]
        assert (await on.push(2, unique_key="a")).new
        assert not (await on.push(3, unique_key="a")).new

    @clause(Keep.KEYS)
    async def test_h3_a_job_given_back_takes_its_key_again(self, on: Stage) -> None:
        """H3: it takes its unique key again, unless another job waits with it by now."""
        await on.push(1, kind="report", unique_key="a")
        assert await on.give_back(await on.take())
        assert not (await on.push(2, kind="report", unique_key="a")).new
        claimed = await on.take()
        assert (await on.push(3, kind="report", unique_key="a")).new
        assert await on.give_back(claimed)
        assert not (await on.push(4, kind="report", unique_key="a")).new
        assert [(number(each), each.unique_key) for each in await on.claim_each()] == [(1, None), (3, "a")]

    @clause(Keep.KEYS)
    async def test_h3_jobs_given_back_together_take_their_keys_again(self, on: Stage) -> None:
        """H3: of two given back at once with one key, one takes it."""
        await on.push(1, unique_key="a")
        first = await on.take()
        await on.push(2, unique_key="a")
        second = await on.take()
        await on.push(3, unique_key="b")
        third = await on.take()
        assert await on.store.give_back([first, second, third]) == [True, True, True]
        assert not (await on.push(4, unique_key="a")).new
        assert not (await on.push(5, unique_key="b")).new
        assert sorted(each.unique_key or "" for each in await on.claim(limit=9)) == ["", "a", "b"]

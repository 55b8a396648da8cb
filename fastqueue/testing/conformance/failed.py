"""Clauses of the jobs that failed for good."""

from __future__ import annotations

from fastqueue.job import Which
from fastqueue.outcome import Settlement
from fastqueue.store import Keep
from fastqueue.testing.conformance.clause import clause
from fastqueue.testing.conformance.stage import DAY, HOUR, MINUTE, T0, Asks, Stage, job, number, numbers

__all__ = ["FailedClauses"]


class FailedClauses:
    @clause("failed")
    async def test_f1_the_latest_failure_is_listed_first(self, on: Stage) -> None:
        """F1: the failed jobs, the latest failure first, each with its error, attempts and moment."""
        await on.failed(1, error="550 no such mailbox", at=T0 + MINUTE)
        await on.failed(2, error="the user has gone", at=T0 + 2 * MINUTE)
        await on.failed(3, error="too early", at=T0)
        await on.push(4, T0 + HOUR)
        found = await on.failures.page()
        assert numbers(found) == [2, 1, 3]
        assert [each.error for each in found] == ["the user has gone", "550 no such mailbox", "too early"]
        assert [each.failed_ms for each in found] == [T0 + 2 * MINUTE, T0 + MINUTE, T0]
        assert {(each.kind, each.attempts, each.run_ms, each.held_ms) for each in found} == {("count", 1, T0, None)}

    @clause("failed")
    async def test_g19_of_equal_moments_the_larger_id_comes_first(self, on: Stage) -> None:
        """G19: of equal moments the larger id first."""
        ids = [await on.failed(n) for n in range(4)]
        assert [each.id for each in await on.failures.page()] == ids[::-1]

    @clause("failed", Keep.QUEUES)
    async def test_f4_only_those_that_are_meant_are_listed(self, on: Stage) -> None:
        """F4: only those that are meant by `which`."""
        for n, error in enumerate(("550 no such mailbox", "Timeout", "100%_\\ 550", "timeout")):
            kind, queue = ("count", "other")[n % 2], ("default", "slow")[n // 2]
            await on.failed(n, error=error, at=T0 + n, kind=kind, queue=queue)
        for which, expected in (
            (Which(), [3, 2, 1, 0]),
            (Which(kind="count"), [2, 0]),
            (Which(queue="slow"), [3, 2]),
            (Which(error="550"), [2, 0]),
            (Which(error="timeout"), [3]),
            (Which(error="%_\\"), [2]),
            (Which(error="%"), [2]),
            (Which(since=T0 + 1), [3, 2, 1]),
            (Which(before=T0 + 1), [0]),
            (Which(since=T0 + 1, before=T0 + 3), [2, 1]),
            (Which(kind="other", queue="slow", error="time", since=T0 + 3, before=T0 + 4), [3]),
            (Which(kind="count", error="timeout"), []),
            (Which(kind="none"), []),
        ):
            found = await on.failures.page(which)
            assert numbers(found) == expected, which
            assert all(map(which.fits, found))
        assert numbers(await on.failures.page(Which(kind="count"), limit=1)) == [2]

    @clause("failed")
    async def test_f5_the_list_comes_in_pages(self, on: Stage) -> None:
        """F5: with `after`, those behind it in that order, whether it is still there or not."""
        for n, at in enumerate((5, 3, 3, 3, 1)):
            await on.failed(n, at=T0 + at, kind=("count", "other")[n % 2])
        seen: list[int] = []
        last = None
        while page := await on.failures.page(limit=2, after=last):
            assert len(page) <= 2
            seen += numbers(page)
            last = page[-1]
            await on.failures.forget([last.id])
        assert seen == [0, 3, 2, 1, 4]
        first, second = await on.failures.page()
        assert numbers([first, second]) == [0, 2]
        assert numbers(await on.failures.page(Which(kind="count"), after=first)) == [2]
        assert await on.failures.page(Which(kind="other"), after=first) == []

    @clause("failed")
    async def test_f2_a_failed_job_runs_again(self, on: Stage) -> None:
        """F2: put failed jobs back, due at `at`, with no attempts."""
        id = await on.failed(1)
        assert await on.failures.run_again([id], at=T0 + HOUR) == [True]
        assert await on.failures.page() == []
        await on.nothing(T0 + 59 * MINUTE)
        found = await on.take(T0 + HOUR)
        assert (found.id, found.attempts, found.interruptions, found.run_at) == (id, 1, 0, T0 + HOUR)
        assert await on.done(found)

    @clause("failed")
    async def test_f2_attempts_used_before_do_not_count(self, on: Stage) -> None:
        """F2: put failed jobs back with no attempts, however many they had."""
        await on.push(1)
        for _ in range(3):
            assert await on.retry(await on.take(), T0)
        claimed = await on.take()
        assert await on.fail(claimed)
        assert [each.attempts for each in await on.failures.page()] == [4]
        assert await on.failures.run_again([claimed.id], at=T0) == [True]
        assert [each.attempts for each in await on.stored()] == [0]
        assert (await on.take()).attempts == 1

    @clause("failed")
    async def test_f3_jobs_that_have_not_failed_are_left_alone(self, on: Stage) -> None:
        """F3: others are left alone."""
        waiting = await on.push(1, T0 + HOUR)
        await on.push(2)
        running = await on.take()
        failed = await on.failed(3)
        before = await on.stored()
        ids = [waiting.id, running.id, 999_999, 2**62]
        assert await on.failures.run_again(ids, at=T0) == [False] * 4
        assert await on.failures.forget(ids) == [False] * 4
        assert await on.stored() == before
        assert await on.failures.run_again([waiting.id, failed, running.id], at=T0) == [False, True, False]
        assert numbers(await on.claim_each()) == [3]

    @clause("failed")
    async def test_g20_an_id_that_is_none_answers_false(self, on: Stage) -> None:
        """G20: an id that no job can have answers False."""
        await on.failed(1)
        assert await on.failures.run_again([0, -1], at=T0) == [False, False]
        assert await on.failures.forget([0, -1]) == [False, False]
        assert await on.failures.run_again([], at=T0) == []
        assert await on.failures.forget([]) == []

    @clause("failed")
    async def test_f2_many_run_again_in_one_call(self, on: Stage) -> None:
        """F2: answer for each whether it was a failed one; they wait in the order of (run_at, id)."""
        ids = [await on.failed(n) for n in range(4)]
        await on.push(4, T0 + 1)
        assert await on.failures.run_again([ids[2], ids[0], ids[3]], at=T0) == [True, True, True]
        assert numbers(await on.claim(T0 + 1, limit=9)) == [0, 2, 3, 4]
        assert numbers(await on.failures.page()) == [1]

    @clause("failed", Keep.AT_ONCE, Keep.ONE_AT_A_TIME, Keep.CARRIED)
    async def test_g8_a_job_run_again_keeps_error_carried_and_limits(self, on: Stage) -> None:
        """G8: error text, carried and limits stay."""
        asks: Asks = {"at_once": 2, "alone_key": "a", "carried": '{"t": "1"}', "options": '{"attempts": 3}'}
        id = await on.failed(1, error="first error", **asks)
        assert await on.failures.run_again([id], at=T0) == [True]
        found = await on.take()
        assert found.error == "first error"
        assert {name: getattr(found, name) for name in asks} == asks

    @clause("failed")
    async def test_forget_deletes_failed_jobs(self, on: Stage) -> None:
        """forget: delete failed jobs; answer for each whether it was a failed one."""
        ids = [await on.failed(n) for n in range(3)]
        assert await on.failures.forget([ids[0], 999_999, ids[2]]) == [True, False, True]
        assert numbers(await on.stored()) == [1]
        assert await on.failures.forget([ids[0]]) == [False]
        assert await on.failures.run_again([ids[0]], at=T0) == [False]

    async def test_x3_prune_forgets_old_failures(self, on: Stage) -> None:
        """X3: failed jobs with `failed_at < failed_before`; it answers how many jobs went."""
        now, limit = T0 + 40 * DAY, T0 + 10 * DAY
        for n, at in enumerate((T0, limit - 1, limit, T0 + 30 * DAY)):
            await on.failed(n, at=at)
        await on.push(4, T0 - 100 * DAY)
        assert await on.store.prune(now, failed_before=limit) == 2
        assert numbers(await on.stored()) == [2, 3, 4]
        assert await on.store.prune(now, failed_before=limit) == 0
        assert number(await on.take(T0 - 100 * DAY)) == 4

    async def test_x3_prune_forgets_any_number(self, on: Stage) -> None:
        """X3: in small portions, but all of them."""
        await on.store.push([job(n) for n in range(1_100)], now=T0)
        claimed = [each for _ in range(11) for each in await on.claim(limit=100)]
        await on.settle(*(Settlement.fail(each, at=T0, error="it broke") for each in claimed))
        assert await on.store.prune(T0 + DAY, failed_before=T0 + 1) == 1_100
        assert await on.stored() == []

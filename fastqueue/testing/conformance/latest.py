"""Clauses of `latest`: a push whose key waits moves that job."""

from __future__ import annotations

from fastqueue.job import Moment, Pushed
from fastqueue.store import Keep
from fastqueue.testing.conformance.clause import clause
from fastqueue.testing.conformance.stage import DAY, HOUR, MINUTE, T0, Asks, Stage, job, number, numbers

__all__ = ["LatestClauses"]


class LatestClauses:
    @clause(Keep.LATEST)
    async def test_l1_the_waiting_job_moves_later_and_earlier(self, on: Stage) -> None:
        """L1: with `latest` the job that waits takes the push's `run_at`, earlier or later."""
        first = await _push_latest(on, 1, T0 + MINUTE)
        moved = await _push_latest(on, 1, T0 + 5 * MINUTE)
        assert (first.new, moved) == (True, Pushed(first.id, new=False))
        await on.nothing(T0 + 4 * MINUTE)
        await _push_latest(on, 1, T0 + 2 * MINUTE)
        found = await on.take(T0 + 2 * MINUTE)
        assert (found.id, found.run_at) == (first.id, T0 + 2 * MINUTE)
        assert await on.done(found)
        await on.nothing(T0 + DAY)

    @clause(Keep.LATEST)
    async def test_l1_a_moved_job_takes_the_place_of_its_new_time(self, on: Stage) -> None:
        """L1: the job that waits takes the push's `run_at`, and by it its place in the line."""
        await _push_latest(on, 1, T0)
        await on.push(2, T0 + 1)
        await _push_latest(on, 1, T0 + 2)
        assert numbers(await on.claim(T0 + HOUR, limit=2)) == [2, 1]

    @clause(Keep.LATEST)
    async def test_l1_of_several_in_one_call_the_last_time_counts(self, on: Stage) -> None:
        """L1: pushes of one call are kept in their order."""
        await on.push(0, T0 + HOUR, unique_key="b")
        asks: Asks = {"unique_key": "a", "latest": True}
        pushed = await on.store.push(
            [
                job(1, T0 + 9, **asks),
                job(2, T0 + 5, unique_key="b", latest=True),
                job(3, T0 + 1, **asks),
                job(4, T0 + 7, **asks),
            ],
            now=T0,
        )
        assert [each.new for each in pushed] == [True, False, False, False]
        assert {pushed[0].id} == {pushed[2].id, pushed[3].id}
        assert [(number(each), each.run_at) for each in await on.claim(T0 + HOUR, limit=9)] == [
            (0, T0 + 5),
            (1, T0 + 7),
        ]

    @clause(Keep.LATEST)
    async def test_l2_a_held_job_is_not_moved(self, on: Stage) -> None:
        """L2: a held job is not moved, and its key is free."""
        first = await _push_latest(on, 1, T0)
        running = await on.take(T0)
        second = await _push_latest(on, 1, T0 + HOUR)
        assert second.new
        assert second.id != first.id
        assert await on.retry(running, T0 + 10 * MINUTE)
        found = await on.take(T0 + 10 * MINUTE)
        assert found.id == first.id
        assert await on.done(found)
        assert (await on.take(T0 + HOUR)).id == second.id

    @clause(Keep.LATEST)
    async def test_l3_a_push_without_latest_moves_nothing(self, on: Stage) -> None:
        """L3: only a push with `latest` moves the job that waits, whatever that one was pushed with."""
        await _push_latest(on, 1, T0)
        assert not (await on.push(1, T0 + HOUR, unique_key="a")).new
        assert (await on.take(T0)).run_at == T0

    @clause(Keep.LATEST, Keep.CARRIED, Keep.AT_ONCE, Keep.ONE_AT_A_TIME, Keep.QUEUES)
    async def test_g4_a_moved_job_changes_its_time_and_nothing_else(self, on: Stage) -> None:
        """G4: with `latest` the job that waits takes the push's `run_at`, and nothing else."""
        key: Asks = {"unique_key": "a", "latest": True}
        await on.push(1, alone_key="x", at_once=3, carried='{"t": "1"}', options="{}", hold_ms=90_000, queue="q", **key)
        other: Asks = {
            "alone_key": "y",
            "at_once": 5,
            "carried": '{"t": "2"}',
            "options": "[]",
            "hold_ms": 1,
            "queue": "r",
        }
        await on.push(2, T0 + 1, **key, **other)
        found = await on.take(T0 + 1)
        assert (number(found), found.run_at, found.queue, found.hold_ms) == (1, T0 + 1, "q", 90_000)
        assert (found.alone_key, found.at_once, found.carried, found.options) == ("x", 3, '{"t": "1"}', "{}")

    @clause(Keep.LATEST)
    async def test_g4_a_moved_job_keeps_the_history_it_has(self, on: Stage) -> None:
        """G4: the job that waits takes the push's `run_at`, and nothing else: attempts and id stay."""
        first = await _push_latest(on, 1, T0)
        assert await on.give_back(await on.take())
        assert await _push_latest(on, 2, T0 + MINUTE) == Pushed(first.id, new=False)
        found = await on.take(T0 + MINUTE)
        assert (found.id, found.attempts, number(found)) == (first.id, 1, 1)


async def _push_latest(on: Stage, n: int, at: Moment) -> Pushed:
    return await on.push(n, at, unique_key="a", latest=True)

"""Clauses of jobs that leave for another store, and arrive from one."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from fastqueue.errors import MoveRefused
from fastqueue.moves import MovedJob, Portion
from fastqueue.store import Keep, Store
from fastqueue.testing.conformance.clause import clause
from fastqueue.testing.conformance.stage import HOUR, MINUTE, T0, Asks, Stage, numbers

__all__ = ["MoveClauses"]

AWAY = "the identity of another store"

_EVERYTHING: Asks = {
    "queue": "slow",
    "hold_ms": 2 * MINUTE,
    "options": '{"attempts": 3}',
    "unique_key": "u",
    "alone_key": "a",
    "at_once": 3,
    "carried": '{"t": "1"}',
    "schedule": "s",
}


async def leave(on: Stage, at: int = T0, *, limit: int = 100) -> Portion:
    """Take a portion, which must be there."""
    portion = await on.moves.leave(AWAY, now=at, limit=limit)
    assert portion is not None
    return portion


def whole(job: MovedJob) -> dict[str, Any]:
    """What is kept of a job, but for when it was pushed, which a store may leave out, and how its lane is written."""
    return {name: value for name, value in asdict(job).items() if name not in ("created_at", "part")}


async def left_jobs(store: Store, *, at: int = T0) -> list[dict[str, Any]]:
    """All that is in a store, as it leaves."""
    assert store.moves is not None
    portion = await store.moves.leave(AWAY, now=at, limit=1_000)
    return [] if portion is None else [whole(job) for job in portion.jobs]


def arriving(id: int, **how: Any) -> MovedJob:
    """A job that comes from another store."""
    job = MovedJob(
        id=id,
        queue="default",
        kind="count",
        mode=0,
        part="",
        run_at=T0,
        hold_ms=MINUTE,
        attempts=0,
        interruptions=0,
        payload=f'{{"n": {id}}}',
        options=None,
        unique_key=None,
        alone_key=None,
        carried=None,
        schedule=None,
        error=None,
        failed_at=None,
        created_at=T0,
    )
    return replace(job, **how)


class MoveClauses:
    @clause("moves", *Keep)
    async def test_m1_a_job_leaves_whole(self, on: Stage) -> None:
        """M1: a job leaves whole, whether it waits, is delayed or has failed; one that is held stays."""
        failed = await on.failed(0, error="it broke", at=T0 + 1, kind="other")
        tried = await on.push(1, kind="report")
        assert await on.retry(await on.take(kinds=["report"]), T0 + 5, "once")
        delayed = await on.push(2, T0 + HOUR, kind="digest", **_EVERYTHING)
        await on.push(3)
        await on.take()
        found = {job.id: job for job in (await leave(on)).jobs}
        assert list(found) == [failed, tried.id, delayed.id]
        assert (found[failed].failed_at, found[failed].error, found[failed].attempts) == (T0 + 1, "it broke", 1)
        assert (found[tried.id].run_at, found[tried.id].error, found[tried.id].attempts) == (T0 + 5, "once", 1)
        moved = found[delayed.id]
        assert {name: getattr(moved, name) for name in _EVERYTHING if name != "at_once"} == {
            name: value for name, value in _EVERYTHING.items() if name != "at_once"
        }
        assert (moved.kind, moved.payload, moved.run_at, moved.failed_at) == ("digest", '{"n": 2}', T0 + HOUR, None)

    @clause("moves")
    async def test_m1_a_job_whose_hold_is_over_leaves(self, on: Stage) -> None:
        """M1: one that is held stays: until exactly the end of its hold."""
        await on.push(1)
        late = await on.take()
        assert await on.moves.leave(AWAY, now=T0 + MINUTE - 1, limit=9) is None
        assert [job.attempts for job in (await leave(on, T0 + MINUTE)).jobs] == [1]
        assert not await on.done(late)
        assert await on.store.renew([late], now=T0, until=T0 + HOUR) == [False]
        assert not await on.give_back(late)

    @clause("moves", "failed")
    async def test_m2_what_leaves_is_found_by_nobody(self, on: Stage) -> None:
        """M2: from then on it is not claimed, not run again and not forgotten."""
        id = await on.failed(0, kind="other")
        await on.push(1)
        await leave(on)
        await on.nothing(T0 + 1_000 * HOUR)
        assert await on.failures.run_again([id], at=T0) == [False]
        assert await on.failures.forget([id]) == [False]
        await on.nothing(T0 + 1_000 * HOUR)

    @clause("moves", Keep.KEYS, Keep.LATEST)
    async def test_m2_a_key_that_leaves_still_waits(self, on: Stage) -> None:
        """M2: a push of its unique key still finds it waiting, and it is not claimed for that."""
        pushed = await on.push(1, unique_key="u")
        await leave(on)
        for latest in (False, True):
            again = await on.push(2, T0 + 1, unique_key="u", latest=latest)
            assert (again.id, again.new) == (pushed.id, False)
            await on.nothing(T0 + HOUR)

    @clause("moves")
    async def test_m3_a_portion_is_answered_until_it_has_left(self, on: Stage) -> None:
        """M3: a portion that has not `left` is answered again, the same jobs by the same number."""
        for n in range(5):
            await on.push(n)
        first = await leave(on, limit=2)
        await on.push(5)
        other = (await on.another()).moves
        assert other is not None
        assert await other.leave(AWAY, now=T0 + HOUR, limit=9) == first == await leave(on)
        await on.moves.left(first.number)
        second = await leave(on, limit=2)
        assert second.number > first.number
        assert [job.payload for job in second.jobs] == ['{"n": 2}', '{"n": 3}']
        refused = False
        try:
            await on.moves.leave("a third store", now=T0, limit=1)
        except MoveRefused:
            refused = True
        assert refused, "a portion leaves for a third store while another is on its way"
        await on.moves.left(second.number)
        third = await on.moves.leave("a third store", now=T0, limit=1)
        assert third is not None
        assert third.number > second.number

    @clause("moves", run="race")
    async def test_m3_all_who_ask_at_once_get_the_same_portion(self, on: Stage) -> None:
        """M3: so it is to whoever asks at the same time."""
        for n in on.rounds:
            await on.push(n)
            await on.push(n)
            portions = await on.race(_leave)
            assert portions[0] is not None
            assert portions == [portions[0]] * len(portions)
            await on.moves.left(portions[0][0])

    @clause("moves")
    async def test_m4_what_has_left_is_gone_and_nothing_else(self, on: Stage) -> None:
        """M4: delete the jobs of the portion with this number, and nothing else."""
        await on.push(0, kind="other")
        held = await on.take(kinds=["other"])
        for n in range(1, 4):
            await on.push(n)
        portion = await leave(on, limit=2)
        await on.moves.left(portion.number + 1)
        assert len(await on.stored()) == 4
        await on.moves.left(portion.number)
        await on.moves.left(portion.number)
        assert numbers(await on.stored()) == [0, 3]
        assert await on.done(held)
        assert numbers(await on.claim(limit=9)) == [3]
        assert await on.moves.leave(AWAY, now=T0, limit=9) is None

    @clause("moves")
    async def test_m5_a_portion_arrives_once(self, on: Stage) -> None:
        """M5: a portion is kept only when its number is larger than that of the last one from there."""
        portion = Portion(3, [arriving(1), arriving(2)])
        other = (await on.another()).moves
        assert other is not None
        assert await on.moves.arrive(portion, origin="x") is True
        assert await other.arrive(portion, origin="x") is False
        for claimed in await on.claim(limit=9):
            assert await on.done(claimed)
        assert await on.moves.arrive(portion, origin="x") is False
        assert await on.moves.arrive(Portion(2, [arriving(3)]), origin="x") is False
        assert await on.stored() == []
        assert await on.moves.arrive(Portion(1, [arriving(4)]), origin="y") is True
        assert await on.moves.arrive(Portion(4, [arriving(5)]), origin="x") is True
        assert numbers(await on.claim(limit=9)) == [4, 5]

    @clause("moves", run="race")
    async def test_m5_of_several_at_once_one_arrives(self, on: Stage) -> None:
        """M5: a portion is kept only when its number is larger; of several at once, one is."""
        for round in on.rounds:
            assert sorted(await on.race(_arrive, round + 1)) == [False] * 7 + [True]
            assert len(await on.stored()) == round + 1

    @clause("moves", "failed", *Keep)
    async def test_m6_a_job_is_kept_as_it_left(self, on: Stage) -> None:
        """M6: a job is kept as it left, under its own id."""
        jobs = [
            arriving(7, run_at=T0 - 5, attempts=3, interruptions=2, error="once", **_moved(_EVERYTHING)),
            arriving(20, run_at=T0 + HOUR, kind="other"),
            arriving(300, kind="report", failed_at=T0 + 2, error="it broke", attempts=9),
        ]
        assert await on.moves.arrive(Portion(1, jobs), origin="x")
        [failed] = await on.failures.page()
        assert (failed.id, failed.failed_ms, failed.error, failed.attempts) == (300, T0 + 2, "it broke", 9)
        assert not (await on.push(9, kind="count", unique_key="u")).new
        assert (await on.push(9, T0 + 9 * HOUR, kind="digest")).id > 300
        found = await left_jobs(await on.another())
        assert found[:3] == [whole(job) for job in jobs]

    @clause("moves", Keep.ONE_AT_A_TIME, Keep.AT_ONCE)
    async def test_m6_limits_hold_for_what_has_arrived(self, on: Stage) -> None:
        """M6: a job is kept as it left: in its lane."""
        alone = [arriving(id, kind="report", mode=1, alone_key="a") for id in (1, 2)]
        two = [arriving(id, mode=4) for id in (3, 4, 5)]
        assert await on.moves.arrive(Portion(1, [*alone, *two]), origin="x")
        assert sorted(numbers(await on.claim(limit=9))) == [1, 3, 4]

    @clause("moves", Keep.KEYS)
    async def test_m6_ids_and_keys_that_are_taken_are_let_go(self, on: Stage) -> None:
        """M6: a new id where it is taken; a key with which another job waits here is let go."""
        own = await on.push(0, unique_key="u")
        jobs = [arriving(own.id, unique_key="u"), arriving(own.id + 1, unique_key="v"), arriving(own.id + 2)]
        assert await on.moves.arrive(Portion(1, jobs), origin="x")
        kept = {each.payload: each for each in await on.stored()}
        assert len(kept) == 4
        new = kept[jobs[0].payload]
        assert new.id > own.id + 2
        assert new.unique_key is None
        assert (kept[jobs[1].payload].id, kept[jobs[1].payload].unique_key) == (own.id + 1, "v")
        assert kept[jobs[2].payload].id == own.id + 2
        assert (await on.push(9)).id > new.id

    @clause("moves", "schedules")
    async def test_m7_runs_are_recorded_forward_only(self, on: Stage) -> None:
        """M7: take over the last run of each schedule, unless a later one is recorded."""
        await on.moves.record({"a": T0, "b": T0})
        await on.moves.record({"a": T0 - 1, "b": T0 + 1})
        assert await on.schedules.recorded() == {"a": T0, "b": T0 + 1}

    @clause("moves")
    async def test_store_objects_on_one_database_have_one_identity(self, on: Stage) -> None:
        """identity: whichever object or process asks."""
        other = (await on.another()).moves
        assert other is not None
        assert await other.identity() == await on.moves.identity()


def _moved(asks: Asks) -> dict[str, Any]:
    """Fields of a `NewJob` as those of a `MovedJob`."""
    rest = {name: value for name, value in asks.items() if name != "at_once"}
    return rest | {"mode": 2 * asks["at_once"] + (asks["alone_key"] is not None)}


async def _leave(store: Store, _: int) -> tuple[int, list[int]] | None:
    assert store.moves is not None
    portion = await store.moves.leave(AWAY, now=T0, limit=9)
    return None if portion is None else (portion.number, [job.id for job in portion.jobs])


async def _arrive(store: Store, _: int, number: int) -> bool:
    assert store.moves is not None
    return await store.moves.arrive(Portion(number, [arriving(100 + number)]), origin="x")

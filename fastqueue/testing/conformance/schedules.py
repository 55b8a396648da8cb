"""Clauses of schedules: each run is pushed once."""

from __future__ import annotations

from fastqueue.job import Moment
from fastqueue.store import Keep, RunPushed
from fastqueue.testing.conformance.clause import clause
from fastqueue.testing.conformance.stage import DAY, HOUR, T0, Stage, job, number

__all__ = ["ScheduleClauses"]


class ScheduleClauses:
    @clause("schedules")
    async def test_s1_a_run_is_pushed_once(self, on: Stage) -> None:
        """S1: a run goes in only when it is later than the recorded one."""
        assert await _push_run(on, "report", T0) == RunPushed(True, T0)
        assert await _push_run(on, "report", T0) == RunPushed(False, T0)
        [found] = await on.claim_each(T0 + DAY)
        assert (found.kind, found.run_at, found.schedule) == ("report", T0, "report")

    @clause("schedules")
    async def test_s2_runs_only_go_forward(self, on: Stage) -> None:
        """S2: a run goes in only when it is later than the recorded one."""
        assert await _push_run(on, "report", T0 + HOUR) == RunPushed(True, T0 + HOUR)
        assert await _push_run(on, "report", T0) == RunPushed(False, T0 + HOUR)
        assert await _push_run(on, "report", T0 + HOUR - 1) == RunPushed(False, T0 + HOUR)
        assert await _push_run(on, "report", T0 + HOUR + 1) == RunPushed(True, T0 + HOUR + 1)
        assert len(await on.claim_each(T0 + DAY)) == 2

    @clause("schedules")
    async def test_s3_schedules_are_apart(self, on: Stage) -> None:
        """S3: schedules are apart."""
        assert await on.schedules.recorded() == {}
        assert (await _push_run(on, "report", T0)).pushed
        assert (await _push_run(on, "digest", T0 + 1)).pushed
        assert await on.schedules.recorded() == {"report": T0, "digest": T0 + 1}

    @clause("schedules", Keep.KEYS)
    async def test_u5_the_run_of_a_waiting_key_is_recorded_without_a_job(self, on: Stage) -> None:
        """U5: when the job's unique key waits, the run is recorded, no job is added; the answer is False."""
        await on.push(1, kind="report", unique_key="a")
        run = job(2, T0 + HOUR, kind="report", unique_key="a", schedule="report")
        assert await on.schedules.push_run("report", run, now=T0) == RunPushed(False, T0 + HOUR)
        assert await _push_run(on, "report", T0 + HOUR) == RunPushed(False, T0 + HOUR)
        [found] = await on.claim_each(T0 + DAY)
        assert number(found) == 1

    @clause("schedules", Keep.KEYS)
    async def test_u5_a_run_whose_key_is_free_waits_with_it(self, on: Stage) -> None:
        """U5: the run of a unique kind takes its key as any push does."""
        run = job(1, kind="report", unique_key="a", schedule="report")
        assert (await on.schedules.push_run("report", run, now=T0)).pushed
        assert not (await on.push(2, kind="report", unique_key="a")).new

    @clause("schedules", Keep.LATEST)
    async def test_g3_a_run_never_moves_the_waiting_job(self, on: Stage) -> None:
        """G3: the waiting job is not moved, not by `latest` either."""
        await on.push(1, T0, kind="report", unique_key="a", latest=True)
        run = job(2, T0 + HOUR, kind="report", unique_key="a", latest=True, schedule="report")
        assert not (await on.schedules.push_run("report", run, now=T0)).pushed
        found = await on.take(T0)
        assert (number(found), found.run_at) == (1, T0)

    @clause("schedules")
    async def test_g14_a_run_that_cannot_be_kept_is_not_recorded(self, on: Stage) -> None:
        """G14: record and job are kept together, or neither."""
        impossible = job(1, T0 + HOUR, schedule="report", hold_ms=2**80)
        try:
            await on.schedules.push_run("report", impossible, now=T0)
        except Exception:
            assert await on.schedules.recorded() == {}
            assert await on.stored() == []
            assert (await _push_run(on, "report", T0)).pushed
        else:
            assert len(await on.stored()) == len(await on.schedules.recorded()) == 1

    @clause("schedules")
    async def test_s5_each_instance_hears_of_the_zone_data_of_the_others(self, on: Stage) -> None:
        """S5: the answer tells for each version when an instance with it was last said to be at work."""
        other = (await on.another()).schedules
        assert other
        assert await on.schedules.tell_zone_data("2025b", now=T0) == {"2025b": T0}
        assert await other.tell_zone_data("2026f", now=T0 + 1) == {"2025b": T0, "2026f": T0 + 1}
        assert await on.schedules.tell_zone_data("2025b", now=T0 + HOUR) == {"2025b": T0 + HOUR, "2026f": T0 + 1}
        assert await on.schedules.recorded() == {}


async def _push_run(on: Stage, schedule: str, at: Moment) -> RunPushed:
    return await on.schedules.push_run(schedule, job(0, at, kind=schedule, schedule=schedule), now=T0)

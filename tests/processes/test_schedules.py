from __future__ import annotations

import random
import time
from datetime import timedelta

import pytest

from fastqueue.job import StoredJob
from fastqueue.stores import store_of
from fastqueue.testing import FakeClock
from tests.processes.crew import Member, crew_of

INSTANCES = 5
SLOTS = [pytest.param(40, id="short"), pytest.param(200, id="long", marks=pytest.mark.long)]
STORES = ["sqlite", "postgres", "mysql", "redis"]


def go_through(url: str, slots: int) -> None:
    """Have five instances go from minute to minute, and in one of eight kill one as it pushes."""
    deadly = set(random.sample(range(1, slots + 1), slots // 8))
    with crew_of(INSTANCES, "instance", url) as members:
        for minute in range(1, slots + 1):
            for member in members:
                member.tell(minute)
            victim = random.choice(members) if minute in deadly else None
            if victim is not None:
                # Anywhere in its push: before it begins, in the middle of it, after its end.
                time.sleep(random.uniform(0, 0.006))
                assert victim.works
                victim.kill()
                members.remove(victim)
            assert {member.hear() for member in members} == {str(minute)}
            if victim is not None:
                members.append(Member("instance", url))
                assert members[-1].hear() == "ready"


async def pushed(url: str) -> list[StoredJob]:
    store = store_of(url)
    await store.open()
    try:
        return await store.jobs(now=0, limit=1000)
    finally:
        await store.close()


@pytest.mark.processes
@pytest.mark.parametrize("slots", SLOTS)
@pytest.mark.parametrize("name", STORES)
async def test_five_instances_that_are_killed_at_random_push_each_slot_s_job_exactly_once(
    name: str, slots: int, request: pytest.FixtureRequest
) -> None:
    url: str = request.getfixturevalue(f"{name}_url")
    go_through(url, slots)

    start = FakeClock()()
    jobs = await pushed(url)
    assert sorted(job.run_at for job in jobs) == [start + timedelta(minutes=slot) for slot in range(1, slots + 1)]
    assert {(job.kind, job.schedule) for job in jobs} == {("report", "report")}

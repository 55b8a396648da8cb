"""Failed jobs many at a time: read page by page, grouped, run again at a pace, forgotten."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fastqueue import Queue
from fastqueue.errors import OptionError
from fastqueue.failures import Changed, forget, groups, run_again
from fastqueue.job import NewJob, Which
from fastqueue.outcome import Settlement
from fastqueue.testing import FakeClock


async def with_failures(*errors: str, kinds: tuple[str, ...] = ("mail",)) -> tuple[Queue, FakeClock, list[int]]:
    """A queue in which jobs of some kinds in turn have failed, one for each error and a second apart; their ids."""
    clock = FakeClock()
    queue = Queue("memory://", clock=clock)
    now = queue.clock.now()
    ids: list[int] = []
    for place, error in enumerate(errors):
        kind = kinds[place % len(kinds)]
        await queue.store.push([NewJob(kind=kind, payload="1", run_at=now)], now=now)
        (job,) = (await queue.store.claim(now, token=place + 1, limit=1, queues=None, kinds=[kind])).jobs
        await queue.store.settle([Settlement.fail(job, at=now + place * 1000, error=error)])
        ids.append(job.id)
    return queue, clock, ids


async def test_every_failed_job_is_read_however_many_there_are() -> None:
    queue, _, ids = await with_failures(*["gone wrong"] * 1_201)

    assert [job.id async for job in queue.each_failed()] == ids[::-1]
    assert [job.id for job in await queue.failed(limit=None)] == ids[::-1]
    assert len(await queue.failed()) == 100


async def test_only_the_failed_jobs_that_are_meant_are_read() -> None:
    queue, clock, ids = await with_failures("no mailbox", "timeout", "no mailbox", kinds=("mail", "report"))
    start = clock()

    assert [job.id async for job in queue.each_failed(error="mailbox")] == [ids[2], ids[0]]
    assert [job.id async for job in queue.each_failed(kind="report")] == [ids[1]]
    assert [job.id async for job in queue.each_failed(since=start + timedelta(seconds=1))] == [ids[2], ids[1]]
    assert [job.id async for job in queue.each_failed(before=start + timedelta(seconds=1))] == [ids[0]]
    assert [job async for job in queue.each_failed(queue="other")] == []
    with pytest.raises(OptionError, match="time zone"):
        [job async for job in queue.each_failed(since=start.replace(tzinfo=None))]


async def test_failed_jobs_are_grouped_by_kind_and_error_the_largest_group_first() -> None:
    queue, _, ids = await with_failures("timeout", "no mailbox", "no mailbox", "no mailbox", kinds=("mail", "report"))

    found = [(group.kind, group.error, group.jobs, group.first.id, group.last.id) for group in await groups(queue)]

    assert found == [
        ("report", "no mailbox", 2, ids[1], ids[3]),
        ("mail", "no mailbox", 1, ids[2], ids[2]),
        ("mail", "timeout", 1, ids[0], ids[0]),
    ]
    assert [group.kind for group in await groups(queue, Which(error="timeout"))] == ["mail"]


async def test_jobs_run_again_at_a_pace_come_due_in_the_seconds_after() -> None:
    queue, _, ids = await with_failures(*["gone wrong"] * 7)
    now = queue.clock.now()

    changed = await run_again(queue, ids, pace=3)

    assert changed == Changed(7)
    waiting = await queue.store.jobs(now=now)
    assert [job.run_ms - now for job in waiting] == [0, 0, 0, 1000, 1000, 1000, 2000]
    assert {job.attempts for job in waiting} == {0}


async def test_a_pace_below_one_a_second_is_kept_too() -> None:
    queue, _, ids = await with_failures(*["gone wrong"] * 3)
    now = queue.clock.now()

    await run_again(queue, ids, pace=0.1)

    assert [job.run_ms - now for job in await queue.store.jobs(now=now)] == [0, 10_000, 20_000]
    with pytest.raises(OptionError, match="pace=0"):
        await run_again(queue, ids, pace=0)


async def test_any_number_is_run_again_and_forgotten() -> None:
    queue, _, ids = await with_failures(*["gone wrong", "timeout"] * 700)

    assert (await run_again(queue, Which(error="timeout"))).number == 700
    assert (await forget(queue, Which(error="timeout"))).number == 0
    assert (await forget(queue, Which())).number == 700
    assert [job.id for job in await queue.store.jobs(now=queue.clock.now(), limit=2_000)] == ids[1::2]


async def test_ids_of_no_failed_job_are_told_apart_and_the_rest_is_done() -> None:
    queue, _, (first, second) = await with_failures("one", "two")
    await queue.run_again(first)

    changed = await forget(queue, [99, first, second, second])

    assert (changed.number, [job.id for job in changed.not_failed], changed.unknown) == (1, [first], [99])
    assert [job.id for job in await queue.store.jobs(now=queue.clock.now())] == [first]


async def test_a_dry_run_says_what_would_be_done_and_does_nothing() -> None:
    queue, _, ids = await with_failures("one", "two")
    before = await queue.store.jobs(now=queue.clock.now())

    assert (await run_again(queue, Which(), dry_run=True)).number == 2
    assert await forget(queue, [ids[0], 99], dry_run=True) == Changed(1, unknown=[99])
    assert await queue.store.jobs(now=queue.clock.now()) == before

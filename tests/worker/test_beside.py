"""What goes on beside the claimer."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fastqueue import Permanent, Queue
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import FakeClock
from fastqueue.worker import beside
from tests.worker.stage import kept, running, until


async def test_jobs_that_failed_more_than_30_days_ago_are_forgotten_and_younger_ones_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(beside, "PRUNE_FIRST_AFTER", 0.0)
    clock, store = FakeClock(), MemoryStore()

    def queue() -> Queue:
        made = Queue(store, clock=clock)

        @made.handle("mail")
        async def mail(number: int) -> None:
            raise Permanent(f"no mailbox {number}")

        return made

    first = queue()
    await first.kinds["mail"].push(1)
    await first.drain()
    clock.move(timedelta(days=30))
    await first.kinds["mail"].push(2)
    await first.drain()
    assert [job.error for job in await first.failed()] == ["no mailbox 2", "no mailbox 1"]
    clock.move(timedelta(days=10))

    async def one_is_left() -> bool:
        return len(await kept(store)) == 1

    async with running(queue()):
        await until(one_is_left)
    assert [job.payload for job in await kept(store)] == ["2"]

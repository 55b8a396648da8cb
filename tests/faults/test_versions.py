"""A rolling deploy: for a while, processes of two versions work on one database."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from fastqueue import Queue
from fastqueue.job import NewJob
from tests.faults.site import SOON, Site

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("store", ["sqlite", "postgres", "mysql", "redis"])
async def test_the_old_version_runs_what_it_knows_in_its_own_way_and_leaves_the_new_kinds_untouched(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    site = Site(request.getfixturevalue(f"{store}_url"), tmp_path)
    new = Queue(site.url)
    ran: list[str] = []

    @new.handle("translate")
    async def translate(text: str) -> None:
        ran.append(text)

    async with new:
        now = time.time_ns() // 1_000_000
        known = NewJob(kind="work", payload="1", run_at=now, options='{"attempts":3,"colour":"red","backoff":"moon"}')
        await translate.push("hello")
        await new.store.push([known], now=now)
        old = site.process("works")
        try:
            await site.seen("end", 1)
            old.terminate()
            await asyncio.to_thread(old.wait, SOON)
        finally:
            old.kill()
            old.wait()
        (left,) = await new.store.jobs(now=0, kind="translate")
        assert (left.attempts, left.held_ms, left.error) == (0, None, None)
        assert await new.drain() == 1
        assert ran == ["hello"]
        assert await new.store.jobs(now=0) == []

"""Workers that are killed, that fall, and that are restarted: real processes on each database."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fastqueue import Queue
from tests.worker.process import greet_on, queue_on

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
SOON = 60.0


@pytest.fixture(params=["sqlite", "postgres", "mysql"])
def url(request: pytest.FixtureRequest) -> str:
    """A new database of each sort."""
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


class Site:
    """One job in a database, the workers on it, and the journal that their handlers keep."""

    def __init__(self, url: str, journal: Path, *, attempts: int) -> None:
        self.url, self.journal, self.attempts = url, journal, attempts
        self.queue: Queue = queue_on(url, attempts=attempts)
        self.greet = greet_on(self.queue, "work", journal)

    @contextmanager
    def worker(self, does: str) -> Generator[subprocess.Popen[str]]:
        """A worker process, which is gone at the end of the block."""
        arguments = [does, self.url, str(self.journal), str(self.attempts)]
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.worker.process", *arguments], cwd=ROOT, stderr=subprocess.PIPE, text=True
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    async def said(self, *lines: str) -> None:
        """Wait until the journal has exactly these lines."""
        async with asyncio.timeout(SOON):
            while (said := self._lines()) != list(lines):
                assert said == list(lines)[: len(said)]
                await asyncio.sleep(0.01)

    def _lines(self) -> list[str]:
        return self.journal.read_text().splitlines() if self.journal.exists() else []

    async def gone(self) -> None:
        """Wait until the store has no job, which is then neither waiting, running nor failed."""
        async with asyncio.timeout(SOON):
            while await self.queue.store.jobs(now=0):  # noqa: ASYNC110 - another process empties it
                await asyncio.sleep(0.01)


async def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """How a process has ended by itself, and what it complained of."""
    _, complaints = await asyncio.to_thread(process.communicate, timeout=SOON)
    return process.returncode, complaints


async def test_the_job_of_a_worker_that_was_killed_runs_once_more_after_its_hold(url: str, tmp_path: Path) -> None:
    site = Site(url, tmp_path / "journal", attempts=10)
    async with site.queue:
        await site.greet.push("Ann")
        with site.worker("wait") as killed:
            await site.said("start 1")
            killed.kill()
        (job,) = await site.queue.store.jobs(now=0)
        assert job.held_ms is not None
        with site.worker("work") as other:
            await site.said("start 1", "start 2", "done 2")
            await site.gone()
            other.terminate()
            assert await ended(other) == (0, "")
        assert await site.queue.failed() == []
        await site.said("start 1", "start 2", "done 2")


async def test_a_job_that_takes_its_process_down_each_time_is_failed_after_its_attempts(
    url: str, tmp_path: Path
) -> None:
    site = Site(url, tmp_path / "journal", attempts=3)
    starts = ["start 1", "start 2", "start 3"]
    async with site.queue:
        await site.greet.push("Ann")
        for begun in range(3):
            with site.worker("exit") as falls:
                assert await ended(falls) == (3, "")
            await site.said(*starts[: begun + 1])
        with site.worker("work"):
            async with asyncio.timeout(SOON):
                while not (failed := await site.queue.failed()):  # noqa: ASYNC110 - another process fails it
                    await asyncio.sleep(0.01)
        assert [(job.attempts, job.error) for job in failed] == [(3, "its worker was lost in attempt 3 of 3")]
        await site.said(*starts)


async def test_a_job_that_three_restarts_cut_completes_though_it_has_two_attempts(url: str, tmp_path: Path) -> None:
    site = Site(url, tmp_path / "journal", attempts=2)
    async with site.queue:
        await site.greet.push("Ann")
        for restarts in range(1, 4):
            with site.worker("wait") as cut:
                await site.said(*["start 1"] * restarts)
                cut.terminate()
                assert await ended(cut) == (0, "")
            (job,) = await site.queue.store.jobs(now=0)
            assert (job.attempts, job.held_ms, job.failed_ms) == (0, None, None)
        with site.worker("work"):
            await site.said(*["start 1"] * 4, "done 1")
            await site.gone()


async def test_two_workers_share_a_burst_and_run_each_job_once(url: str, tmp_path: Path) -> None:
    site = Site(url, tmp_path / "journal", attempts=2)
    async with site.queue:
        with site.worker("work"), site.worker("work"):
            await site.greet.push_many([str(number) for number in range(200)])
            await site.gone()
    lines = site.journal.read_text().splitlines()
    assert (lines.count("start 1"), lines.count("done 1"), len(lines)) == (200, 200, 400)

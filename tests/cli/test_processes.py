"""Several processes under one: each job once, crashes mended, and no process ever left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import IO

import pytest

from fastqueue.job import NewJob
from fastqueue.stores import store_of
from tests.cli.command import HERE, NOW, PATIENCE, Command, push

pytestmark = pytest.mark.processes

SIZES = [400, pytest.param(20_000, marks=pytest.mark.long)]
LONGEST = 20 * PATIENCE


class Group:
    """`work --processes 2`, heard line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.parent = process
        self.log: list[str] = []

    def says(self, pattern: str) -> re.Match[str]:
        """Wait for a line of the log; its match."""
        for line in _there(self.parent.stderr):
            self.log.append(line)
            if found := re.search(pattern, line):
                return found
        pytest.fail(f"{pattern!r} was never said:\n{''.join(self.log)}")

    def begin(self) -> list[int]:
        """Wait until both processes work; their ids."""
        return [int(self.says(r"process (\d+) works")[1]) for _ in range(2)]

    def prints(self) -> str:
        """Wait for a line that a job prints."""
        return _there(self.parent.stdout).readline()

    def ends(self) -> tuple[int, str]:
        """Wait until every process has let go of the standard output; the parent's exit status, and what was printed.

        A process that is left behind would keep it open, and this waiting.
        """
        out = _there(self.parent.stdout).read()
        self.log.append(_there(self.parent.stderr).read())
        return self.parent.wait(), out


def _there(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


@contextmanager
def group(fastqueue: Command, *words: str, app: str = "jobs_app:queue", patience: float = PATIENCE) -> Generator[Group]:
    process = fastqueue.start("work", "--processes", "2", *words, app=app)
    watchdog = Timer(patience, process.kill)
    watchdog.start()
    try:
        yield Group(process)
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()


def slow(seconds: float) -> NewJob:
    return NewJob(kind="slow", payload=str(seconds), run_at=NOW, queue="later")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("url", ["sqlite_url", "postgres_url", "mysql_url"])
async def test_two_processes_run_every_job_exactly_once(
    url: str, size: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    ledger.mkdir()
    fastqueue = Command(request.getfixturevalue(url), environ={"LEDGER": str(ledger)})
    jobs = [NewJob(kind="record", payload=str(number), run_at=NOW) for number in range(size)]
    for start in range(0, size, 1000):
        await push(fastqueue.url, *jobs[start : start + 1000])

    with group(fastqueue, "--concurrency", "50", "--stop-when-empty", patience=LONGEST) as both:
        status, _ = both.ends()

    assert status == 0, "".join(both.log)
    written = Counter(int(line) for page in ledger.iterdir() for line in page.read_text().splitlines())
    assert written == Counter(range(size))
    store = store_of(fastqueue.url)
    await store.open()
    assert await store.jobs(kind="record", now=NOW) == []
    await store.close()


async def test_a_process_that_is_killed_is_named_and_another_takes_its_place(fastqueue: Command) -> None:
    with group(fastqueue) as both:
        first = both.begin()
        await push(fastqueue.url, NewJob(kind="die", payload="null", run_at=NOW))

        crash = both.says(r"process (\d+) was ended by SIGKILL; another is started in 1 s")
        third = int(both.says(r"process (\d+) works")[1])

        assert int(crash[1]) in first
        assert third not in first
        await push(fastqueue.url, NewJob(kind="greet", payload='"Ada"', run_at=NOW))
        assert both.prints() == "hello Ada\n"

        os.kill(third, signal.SIGKILL)
        both.says(rf"process {third} was ended by SIGKILL; another is started in 2 s")


async def test_a_signal_to_the_parent_lets_running_jobs_end(fastqueue: Command) -> None:
    with group(fastqueue) as both:
        both.begin()
        await push(fastqueue.url, slow(0.5))
        assert both.prints() == "slow begins\n"

        both.parent.send_signal(signal.SIGINT)

        assert both.ends() == (0, "slow ends\n"), both.log


async def test_a_supervisor_that_signals_every_process_cuts_no_job_short(fastqueue: Command) -> None:
    with group(fastqueue) as both:
        children = both.begin()
        await push(fastqueue.url, slow(0.5))
        assert both.prints() == "slow begins\n"

        for pid in (*children, both.parent.pid):
            os.kill(pid, signal.SIGTERM)

        assert both.ends() == (0, "slow ends\n"), both.log


async def test_a_second_signal_ends_all_of_them_at_once(fastqueue: Command) -> None:
    await push(fastqueue.url, slow(600))
    with group(replace(fastqueue, environ={"SHUTDOWN_TIMEOUT": "600"})) as both:
        both.begin()
        assert both.prints() == "slow begins\n"
        both.parent.send_signal(signal.SIGTERM)
        both.says("stopping")

        both.parent.send_signal(signal.SIGTERM)

        assert both.ends() == (128 + signal.SIGTERM, "")


async def test_the_processes_end_when_their_parent_is_killed(fastqueue: Command) -> None:
    with group(fastqueue) as both:
        both.begin()
        await push(fastqueue.url, slow(0.5))
        assert both.prints() == "slow begins\n"

        both.parent.kill()

        assert both.ends() == (-signal.SIGKILL, "slow ends\n")


async def test_a_deploy_that_broke_the_app_ends_the_rest_in_order(fastqueue: Command, tmp_path: Path) -> None:
    shop = tmp_path / "shop.py"
    shop.write_text(f"import sys; sys.path.insert(0, {str(HERE)!r}); from jobs_app import queue")
    with group(replace(fastqueue, folder=tmp_path), app="shop:queue") as both:
        first, _ = both.begin()
        await push(fastqueue.url, slow(0.5))
        shop.write_text("import what_is_not_there")

        os.kill(first, signal.SIGKILL)

        assert both.ends()[0] == 2
    assert "ended with exit status 2 before it began to work" in "".join(both.log)


def test_an_app_that_cannot_be_loaded_is_said_once_and_not_tried_again(fastqueue: Command) -> None:
    with group(fastqueue, app="jobs_app:nothing") as both:
        assert both.ends()[0] == 2

    said = "".join(both.log)
    assert said.count("'jobs_app:nothing' cannot be loaded") == 1
    assert "ended with exit status 2 before it began to work" in said


def test_once_is_for_one_process(fastqueue: Command) -> None:
    answer = fastqueue("work", "--once", "--processes", "2")

    assert (answer.status, answer.err) == (2, "fastqueue: --once runs one job at a time: leave out --processes\n")

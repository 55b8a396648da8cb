"""A process that only works."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fastqueue.cli._commands import app
from fastqueue.job import NewJob
from tests.cli.command import NOW, PATIENCE, Command, ended, push

pytestmark = pytest.mark.processes


def greet(name: str) -> NewJob:
    return NewJob(kind="greet", payload=f'"{name}"', run_at=NOW)


def slow(seconds: float) -> NewJob:
    return NewJob(kind="slow", payload=str(seconds), run_at=NOW, queue="later")


def begun(command: subprocess.Popen[str]) -> None:
    """Wait until the slow job runs."""
    assert command.stdout is not None
    assert command.stdout.readline() == "slow begins\n"


def on_a_terminal(fastqueue: Command, *words: str) -> str:
    """Run a command whose standard error is a terminal; what that shows."""
    ours, theirs = os.openpty()
    command = fastqueue.start(*words, stderr=theirs)
    os.close(theirs)
    shown = b""
    with suppress(OSError), open(ours, "rb", buffering=0) as terminal:  # Linux ends a terminal by an error
        while part := terminal.read(4096):
            shown += part
    assert ended(command).status == 0
    return shown.decode()


def test_a_store_that_other_processes_cannot_see_is_refused() -> None:
    answer = CliRunner().invoke(app, ["work", "--app", "tests.cli.memory_app:queue"])
    assert answer.exit_code == 2
    assert answer.stderr == (
        "fastqueue: the memory store keeps nothing for other processes: its jobs run in the app's own\n"
    )


@pytest.mark.parametrize("url", ["sqlite_url", "postgres_url", "mysql_url", "redis_url"])
async def test_it_runs_what_is_due_and_ends_when_nothing_is(url: str, request: pytest.FixtureRequest) -> None:
    fastqueue = Command(request.getfixturevalue(url))
    await push(fastqueue.url, *[greet(f"number {n}") for n in range(20)], slow(0.01))

    answer = fastqueue("work", "--stop-when-empty", "--concurrency", "5", "--queue", "default")

    assert answer.status == 0, answer.err
    assert sorted(answer.out.splitlines()) == sorted(f"hello number {n}" for n in range(20))
    assert fastqueue("work", "--once").out == "slow begins\nslow ends\n"
    assert fastqueue("jobs", "--kind", "slow").out == "There are no such jobs.\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_running_jobs_end(fastqueue: Command, number: signal.Signals) -> None:
    await push(fastqueue.url, slow(0.3))
    command = fastqueue.start("work")
    begun(command)

    command.send_signal(number)

    answer = ended(command)
    assert (answer.status, answer.out) == (0, "slow ends\n"), answer.err
    assert fastqueue("jobs", "--kind", "slow").out == "There are no such jobs.\n"


async def test_a_second_signal_stops_at_once(fastqueue: Command) -> None:
    await push(fastqueue.url, slow(60))
    command = fastqueue.start("work")
    begun(command)

    command.send_signal(signal.SIGTERM)
    command.send_signal(signal.SIGINT)

    answer = ended(command)
    assert answer.status in (128 + signal.SIGTERM, 128 + signal.SIGINT)
    assert answer.out == ""


async def test_a_second_signal_stops_a_process_that_nobody_lets_write(fastqueue: Command) -> None:
    await push(fastqueue.url, NewJob(kind="flood", payload="null", run_at=NOW))
    command = fastqueue.start("work")
    assert command.stdout is not None
    assert command.stdout.read(1) == "m"

    command.send_signal(signal.SIGTERM)
    command.send_signal(signal.SIGINT)

    try:
        assert command.wait(PATIENCE) in (128 + signal.SIGTERM, 128 + signal.SIGINT)
    finally:
        command.kill()
        command.communicate()


@pytest.mark.parametrize("how", ["--once", "--stop-when-empty"])
def test_a_worker_that_is_to_end_fails_with_its_store(how: str) -> None:
    answer = Command("postgresql://postgres@127.0.0.1:1/nowhere")("work", how)

    assert answer.status == 1
    assert "fastqueue: StoreUnavailable: " in answer.err


def test_tables_that_are_missing_end_it_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from fastqueue import Queue\nfrom fastqueue.stores.sqlite import SQLiteStore\n"
        "jobs = Queue(SQLiteStore('jobs.db', migrate=False))\n"
    )

    answer = Command("", tmp_path)("work", app="shop:jobs")

    assert answer.status == 1
    assert "fastqueue: SchemaMissing: " in answer.err
    assert "run `fastqueue migrate`" in answer.err


def test_a_store_that_is_away_is_tried_again_until_the_stop() -> None:
    command = Command("postgresql://postgres@127.0.0.1:1/nowhere").start("work")
    assert command.stderr is not None
    while "the store is tried again" not in command.stderr.readline():
        pass

    command.send_signal(signal.SIGTERM)

    assert ended(command).status == 0


async def test_a_job_that_hears_no_cancellation_does_not_keep_the_process(fastqueue: Command) -> None:
    await push(fastqueue.url, NewJob(kind="deaf", payload="null", run_at=NOW))
    command = replace(fastqueue, environ={"SHUTDOWN_TIMEOUT": "0.1"}).start("work")
    assert command.stdout is not None
    assert command.stdout.readline() == "deaf begins\n"

    command.send_signal(signal.SIGTERM)

    answer = ended(command)
    assert answer.status == 0
    assert "the queue stops while jobs still run; they run again after their holds: deaf" in answer.err


async def test_the_environment_says_what_the_options_do_not(fastqueue: Command) -> None:
    await push(fastqueue.url, greet("Ada"), slow(0.01))
    environ = {"QUEUE_NAMES": "later", "QUEUE_CONCURRENCY": "7", "QUEUE_WORKERS": "0"}
    fastqueue = replace(fastqueue, environ=environ)

    by_environment = fastqueue("work", "--stop-when-empty")
    by_option = fastqueue("work", "--stop-when-empty", "--queue", "default", "--concurrency", "3")

    assert by_environment.out == "slow begins\nslow ends\n"
    assert "7 jobs at once, queues: later" in by_environment.err
    assert by_option.out == "hello Ada\n"
    assert "3 jobs at once, queues: default" in by_option.err


def test_an_environment_that_cannot_be_is_a_usage_error(fastqueue: Command) -> None:
    answer = replace(fastqueue, environ={"SHUTDOWN_TIMEOUT": "soon"})("work")

    assert answer.status == 2
    assert answer.err == "fastqueue: SHUTDOWN_TIMEOUT cannot be 'soon': give seconds, 0 or more, such as 10 or 2.5\n"


async def test_a_terminal_shows_the_progress_and_a_file_what_came_of_it(fastqueue: Command) -> None:
    ids = await push(fastqueue.url, greet("Ada"), NewJob(kind="refuse", payload='"no"', run_at=NOW))
    assert len(ids) == 2

    to_a_file = fastqueue("work", "--stop-when-empty")

    assert "stopped; runs: 1 done, 1 failed" in to_a_file.err
    assert "\x1b" not in to_a_file.err
    assert "0 running; ended: none" in on_a_terminal(fastqueue, "work", "--stop-when-empty")


@pytest.mark.parametrize("words", [("--once", "--stop-when-empty"), ("--queue", "")])
def test_options_that_cannot_be_are_usage_errors(fastqueue: Command, words: tuple[str, ...]) -> None:
    assert fastqueue("work", *words).status == 2

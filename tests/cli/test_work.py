"""A process that only works."""

from __future__ import annotations

import signal
import subprocess

import pytest

from fastqueue.job import NewJob
from tests.cli.command import NOW, Command, ended, push

pytestmark = pytest.mark.processes


def greet(name: str) -> NewJob:
    return NewJob(kind="greet", payload=f'"{name}"', run_at=NOW)


def slow(seconds: float) -> NewJob:
    return NewJob(kind="slow", payload=str(seconds), run_at=NOW, queue="later")


def begun(command: subprocess.Popen[str]) -> None:
    """Wait until the slow job runs."""
    assert command.stdout is not None
    assert command.stdout.readline() == "slow begins\n"


@pytest.mark.parametrize("url", ["sqlite_url", "postgres_url", "mysql_url"])
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


@pytest.mark.parametrize("how", ["--once", "--stop-when-empty"])
def test_a_worker_that_is_to_end_fails_with_its_store(how: str) -> None:
    answer = Command("postgresql://postgres@127.0.0.1:1/nowhere")("work", how)

    assert answer.status == 1
    assert answer.err.startswith("fastqueue: ")


@pytest.mark.parametrize("words", [("--once", "--stop-when-empty"), ("--queue", "")])
def test_options_that_cannot_be_are_usage_errors(fastqueue: Command, words: tuple[str, ...]) -> None:
    assert fastqueue("work", *words).status == 2

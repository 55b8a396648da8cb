"""`python -m example_app jobs`: what failed, run again or forgotten."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from example_app.__main__ import main
from example_app.command import USAGE
from example_app.kinds import queue_for
from example_app.settings import Settings
from fastqueue import Permanent
from tests.example_app.site import serving
from tests.servers.smtp import mail_server

Run = Callable[[str], int]
Said = pytest.CaptureFixture[str]


@pytest.fixture
def run(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line on the database of the test."""
    monkeypatch.setenv("DATABASE_URL", settings.database_url)
    return lambda line: main(line.split())


def mails_fail(settings: Settings, *emails: str) -> None:
    """Register addresses that the mail server does not know, by requests with the IDs request-1, request-2 ..."""

    async def register() -> None:
        with mail_server() as (server, url):
            server.refuses = "550 no such mailbox"
            async with serving(replace(settings, smtp_url=url)) as site, site.visitor() as browser:
                for number, email in enumerate(emails, 1):
                    browser.client.headers["X-Request-ID"] = f"request-{number}"
                    await browser.register(email)
                await site.queue.drain()

    asyncio.run(register())


def a_job_fails(settings: Settings, error: str) -> None:
    """Let a job fail that no request pushed."""

    async def push() -> None:
        queue = queue_for(settings)

        @queue.handle("report")
        async def report(_day: str) -> None:
            raise Permanent(error)

        async with queue:
            await report.push("monday")
            await queue.drain()

    asyncio.run(push())


def mails_arrive(settings: Settings) -> list[str]:
    """Run what is due, now that the mail server knows everybody, and return who got mail."""

    async def drain() -> list[str]:
        with mail_server() as (server, url):
            async with serving(replace(settings, smtp_url=url)) as site:
                await site.queue.drain()
            return [mail["To"] for mail in server.mails]

    return asyncio.run(drain())


def test_no_failed_job_is_one_line(run: Run, capsys: Said) -> None:
    assert run("jobs") == 0
    assert capsys.readouterr().out == "No job has failed.\n"


def test_a_failed_job_is_listed_with_all_that_is_known_of_it(run: Run, settings: Settings, capsys: Said) -> None:
    mails_fail(settings, "ann@example.com")
    assert run("jobs") == 0
    out = capsys.readouterr().out
    assert out.startswith("1 job has failed for good. Failed jobs are kept for a month.\n\n")
    assert re.search(
        r"^  1  verify-mail  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, after 1 attempt, pushed by request request-1\n"
        r'      value  \{"user":1,"email":"ann@example\.com"\}\n'
        r"      error  ann@example\.com was refused: 550 no such mailbox\n",
        out,
        re.MULTILINE,
    )


def test_failed_jobs_are_listed_the_newest_first(run: Run, settings: Settings, capsys: Said) -> None:
    mails_fail(settings, "ann@example.com", "bob@example.com")
    a_job_fails(settings, "no data for\nmonday\x1b[31m")
    assert run("jobs") == 0
    out = capsys.readouterr().out
    assert out.startswith("3 jobs have failed for good.")
    assert re.findall(r"^  (\d+)  (\S+)  [^,]*, after 1 attempt(.*)$", out, re.MULTILINE) == [
        ("3", "report", ""),
        ("2", "verify-mail", ", pushed by request request-2"),
        ("1", "verify-mail", ", pushed by request request-1"),
    ]
    assert r"error  no data for\nmonday\x1b[31m" in out


def test_retry_runs_a_job_again_from_its_first_attempt(run: Run, settings: Settings, capsys: Said) -> None:
    mails_fail(settings, "ann@example.com", "bob@example.com")
    assert run("jobs retry 2") == 0
    assert capsys.readouterr().out == "1 job back to run: the app finds it at its next poll.\n"
    assert mails_arrive(settings) == ["bob@example.com"]
    assert run("jobs") == 0
    assert capsys.readouterr().out.startswith("1 job has failed for good.")


def test_retry_all_runs_them_all_again(run: Run, settings: Settings, capsys: Said) -> None:
    assert run("jobs retry all") == 0
    assert capsys.readouterr().out == "0 jobs back to run: the app finds them at its next poll.\n"
    mails_fail(settings, "ann@example.com", "bob@example.com")
    assert run("jobs retry all") == 0
    assert capsys.readouterr().out == "2 jobs back to run: the app finds them at its next poll.\n"
    assert sorted(mails_arrive(settings)) == ["ann@example.com", "bob@example.com"]


def test_forget_drops_a_job(run: Run, settings: Settings, capsys: Said) -> None:
    mails_fail(settings, "ann@example.com", "bob@example.com", "cy@example.com")
    assert run("jobs forget 2") == 0
    assert capsys.readouterr().out == "1 job forgotten.\n"
    assert run("jobs forget all") == 0
    assert capsys.readouterr().out == "2 jobs forgotten.\n"
    assert run("jobs") == 0
    assert capsys.readouterr().out == "No job has failed.\n"
    assert mails_arrive(settings) == []


@pytest.mark.parametrize("verb", ["retry", "forget"])
def test_an_id_that_is_not_of_a_failed_job_is_named_when_the_rest_is_done(
    run: Run, settings: Settings, capsys: Said, verb: str
) -> None:
    mails_fail(settings, "ann@example.com")
    assert run(f"jobs {verb} 42 1") == 1
    said = capsys.readouterr()
    assert said.out.startswith("1 job ")
    assert said.err == "error: 42 is not the id of a failed job\n"


@pytest.mark.parametrize(
    "line", ["job", "jobs list", "jobs retry", "jobs forget", "jobs retry one", "jobs retry -1", "jobs retry all 1"]
)
def test_words_that_make_no_command_are_answered_with_the_usage(run: Run, capsys: Said, line: str) -> None:
    assert run(line) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.endswith(USAGE)


@pytest.mark.parametrize("word", ["help", "-h", "-help", "--help"])
def test_help_lists_the_commands(run: Run, capsys: Said, word: str) -> None:
    assert run(word) == 0
    assert capsys.readouterr().out == USAGE


def test_a_setting_that_cannot_be_is_an_error(run: Run, capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUEUE_WORKERS", "many")
    assert run("jobs") == 1
    assert capsys.readouterr().err.startswith("error: QUEUE_WORKERS cannot be 'many': give a whole number")

"""The app as a process of its own under uvicorn, a real mail server beside it, and what happens when either dies."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import pytest
from httpx import AsyncClient, HTTPError

from tests.example_app.browser import Browser
from tests.servers.smtp import MailServer, free_port, mail_server

pytestmark = pytest.mark.processes

WITHIN = 60.0
"""Seconds within which everything that is waited for has happened, on a machine that is busy with other things."""


class Instance:
    """A running server.

    Attributes:
        process: Its process.
        browser: A visitor of it.
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path, browser: Browser) -> None:
        self.process = process
        self.browser = browser
        self._log = log

    def lines(self, pattern: str) -> list[str]:
        """Read the log lines in which the pattern is found."""
        return [line for line in self._log.read_text().splitlines() if re.search(pattern, line)]

    async def said(self, pattern: str) -> str:
        """Wait for a log line and return it."""
        await until(lambda: self.lines(pattern), what=lambda: f"a line with {pattern!r} in\n{self._log.read_text()}")
        return self.lines(pattern)[0]

    async def ended(self) -> int:
        """Wait for its end and return the exit status."""
        await until(lambda: self.process.poll() is not None, what=lambda: "the end of the server")
        return self.process.returncode


async def until(fact: Callable[[], object], *, what: Callable[[], str]) -> None:
    """Wait until something is so."""
    end = monotonic() + WITHIN
    while not fact():
        if monotonic() > end:
            pytest.fail(f"waited {WITHIN:.0f} seconds for {what()}")
        await asyncio.sleep(0.05)


async def eventually(ask: Callable[[], Awaitable[object]], *, what: str) -> None:
    """Wait until the answer is yes."""
    end = monotonic() + WITHIN
    while not await ask():
        if monotonic() > end:
            pytest.fail(f"waited {WITHIN:.0f} seconds for {what}")
        await asyncio.sleep(0.05)


def started(command: list[str], log: Path, environ: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start a module of Python, and let it write its log to a file."""
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", *command],
            stdout=output,
            stderr=output,
            env={"PATH": os.environ["PATH"], **environ},
        )


@asynccontextmanager
async def served(folder: Path, **environ: str) -> AsyncGenerator[Instance]:
    """Serve the app as the README says, on a SQLite file in the folder, and kill what is left of it at the end."""
    port = free_port()
    log = folder / f"server-{port}.log"
    process = started(
        ["uvicorn", "example_app.main:app", "--port", str(port)],
        log,
        {"DATABASE_URL": f"sqlite:///{folder / 'app.db'}", "APP_URL": f"http://127.0.0.1:{port}", **environ},
    )
    try:
        async with AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            await eventually(lambda: _answers(client), what="the server to answer")
            yield Instance(process, log, Browser(client))
    finally:
        process.kill()
        process.wait()


async def _answers(client: AsyncClient) -> bool:
    try:
        return (await client.get("/")).status_code == 200
    except HTTPError:
        return False


def token_in(server: MailServer) -> str:
    """Take the link out of the newest mail."""
    link = re.search(r"http://\S+(/verify\?token=\S+)", server.mails[-1].get_content())
    assert link
    return link[1]


async def test_an_account_is_registered_verified_by_the_outbox_and_signed_in(tmp_path: Path) -> None:
    async with served(tmp_path) as instance:
        browser = instance.browser
        await browser.register("ann@example.com")
        await eventually(browser.outbox, what="the mail in the outbox")
        link = await browser.newest_link()
        assert (await browser.verify(link)).status_code == 200
        assert (await browser.sign_in("ann@example.com")).url.path == "/account"
        assert instance.lines("GET /verify HTTP")
        assert not instance.lines(re.escape(link.partition("token=")[2]))


async def test_the_request_its_answer_and_its_job_say_the_same_id(tmp_path: Path) -> None:
    async with served(tmp_path) as instance:
        browser = instance.browser
        form = await browser.client.get("/register")
        browser.client.headers["X-Request-ID"] = "abc-123"
        page = await browser.register("ann@example.com")
        answer = page.history[0]
        assert answer.headers["X-Request-ID"] == "abc-123"
        assert "[abc-123]" in await instance.said(r'"POST /register HTTP/1\.1" 303')
        assert "[abc-123]" in await instance.said(r"sent a mail kind=verify-mail")
        assert form.headers["X-Request-ID"] not in ("", "abc-123")


async def test_mail_waits_while_its_server_is_down_and_arrives_once_when_it_is_back(tmp_path: Path) -> None:
    port = free_port()
    async with served(tmp_path, SMTP_URL=f"smtp://127.0.0.1:{port}") as instance:
        instance.browser.client.headers["X-Request-ID"] = "abc-123"
        await instance.browser.register("ann@example.com")
        warning = await instance.said(r"WARNING \[abc-123\] fastqueue")
        for named in ("kind=verify-mail", "job=1", "attempt=1", "request_id=abc-123", "at=20", str(port)):
            assert named in warning
        with mail_server(port=port) as (server, _url):
            await until(lambda: server.mails, what=lambda: "the mail")
            await instance.said("sent a mail kind=verify-mail job=1")
            assert (await instance.browser.verify(token_in(server))).status_code == 200
            assert [mail["To"] for mail in server.mails] == ["ann@example.com"]


async def test_a_mail_that_is_being_sent_when_the_server_is_told_to_stop_is_sent(tmp_path: Path) -> None:
    with mail_server() as (server, url):
        server.answers.clear()
        async with served(tmp_path, SMTP_URL=url) as instance:
            await instance.browser.register("ann@example.com")
            await until(server.arrived.is_set, what=lambda: "the mail to be on its way")
            instance.process.send_signal(signal.SIGTERM)
            await instance.said("Waiting for application shutdown")
            server.answers.set()
            await instance.ended()
            assert len(server.mails) == 1
            assert instance.lines("sent a mail kind=verify-mail job=1")
            assert jobs_in(tmp_path) == 0


async def test_a_mail_that_takes_longer_than_the_grace_goes_back_and_is_sent_by_the_next_start(tmp_path: Path) -> None:
    with mail_server() as (server, url):
        server.answers.clear()
        async with served(tmp_path, SMTP_URL=url, SHUTDOWN_TIMEOUT="0.2") as instance:
            await instance.browser.register("ann@example.com")
            await until(server.arrived.is_set, what=lambda: "the mail to be on its way")
            instance.process.send_signal(signal.SIGTERM)
            await instance.ended()
            assert jobs_in(tmp_path) == 1
    with mail_server(port=int(url.rpartition(":")[2])) as (server, url):
        async with served(tmp_path, SMTP_URL=url) as instance:
            await instance.said("sent a mail kind=verify-mail job=1")
            assert len(server.mails) == 1


async def test_a_mail_whose_server_was_killed_is_sent_once_its_hold_has_run_out(tmp_path: Path) -> None:
    with mail_server() as (server, url):
        server.answers.clear()
        async with served(tmp_path, SMTP_URL=url) as instance:
            await instance.browser.register("ann@example.com")
            await until(server.arrived.is_set, what=lambda: "the mail to be on its way")
            instance.process.kill()
            await instance.ended()
    assert jobs_in(tmp_path) == 1
    with mail_server(port=int(url.rpartition(":")[2])) as (server, url):
        async with served(tmp_path, SMTP_URL=url) as instance:
            let_holds_run_out(tmp_path)
            await instance.said("sent a mail kind=verify-mail job=1")
            assert len(server.mails) == 1
            assert (await instance.browser.verify(token_in(server))).status_code == 200


async def test_an_instance_without_workers_pushes_and_another_sends(tmp_path: Path) -> None:
    with mail_server() as (server, url):
        async with served(tmp_path, SMTP_URL=url, QUEUE_WORKERS="0") as pushing:
            await pushing.browser.register("ann@example.com")
            assert jobs_in(tmp_path) == 1
            async with served(tmp_path, SMTP_URL=url) as working:
                await working.said("sent a mail kind=verify-mail job=1")
            assert len(server.mails) == 1
            assert not pushing.lines("sent a mail")


async def test_the_module_serves_too(tmp_path: Path) -> None:
    port = free_port()
    environ = {"PORT": str(port), "DATABASE_URL": f"sqlite:///{tmp_path / 'app.db'}"}
    process = started(["example_app"], tmp_path / "log", environ)
    try:
        async with AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            await eventually(lambda: _answers(client), what="the server to answer")
    finally:
        process.terminate()
        process.wait()


def test_a_setting_that_cannot_be_is_refused_before_anything_starts(tmp_path: Path) -> None:
    for command in (["example_app"], ["uvicorn", "example_app.main:app"]):
        log = tmp_path / "log"
        process = started(command, log, {"QUEUE_WORKERS": "many"})
        assert process.wait(WITHIN) == 1
        assert "QUEUE_WORKERS cannot be 'many': give a whole number" in log.read_text()


def jobs_in(folder: Path) -> int:
    """Count the jobs in the app's database."""
    with sqlite3.connect(folder / "app.db") as connection:
        (count,) = connection.execute("SELECT count(*) FROM fastqueue_jobs").fetchone()
    connection.close()
    return int(count)


def let_holds_run_out(folder: Path) -> None:
    """Set every hold back, as if its time were up."""
    with sqlite3.connect(folder / "app.db") as connection:
        connection.execute("UPDATE fastqueue_jobs SET held_until = 1 WHERE held_until < 9223372036854775807")
    connection.close()

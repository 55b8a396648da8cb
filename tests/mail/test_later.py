"""A mail that a job sends: kept encrypted, under one Message-ID, until the server has taken it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from fastqueue import Queue
from fastqueue.errors import MailRefused, OptionError
from fastqueue.mail import Attachment, Mail, Mailer
from fastqueue.testing import FakeClock
from tests.mail.sender import queue_on
from tests.servers.smtp import MailServer, mail_server
from tests.worker.stage import until

ROOT = Path(__file__).parents[2]
PATIENCE = 30
KEY, OLD_KEY = (Fernet.generate_key().decode() for _ in range(2))
MAIL = Mail(to="ann@example.org", subject="Shipped", text="It is on its way.\n")


@pytest.fixture
def server() -> Iterator[MailServer]:
    with mail_server() as (server, _):
        yield server


class App:
    """A queue with a mailer, whose clock is moved by hand."""

    def __init__(self, server: MailServer, *keys: str, store: str = "memory://", attempts: int | None = None) -> None:
        self.clock = FakeClock()
        self.queue = Queue(store, clock=self.clock)
        self.mailer = Mailer(server.url, sender="shop@example.com", keys=keys or [KEY], timeout=10, attempts=attempts)
        self.queue.include(self.mailer.kinds)

    async def payloads(self) -> list[str]:
        return [job.payload for job in await self.queue.store.jobs(now=0)]

    async def errors(self) -> list[str | None]:
        return [job.error for job in await self.queue.failed()]


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[AsyncSession]:
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'shop.db'}")
    async with AsyncSession(engine) as session:
        yield session
    await engine.dispose()


async def test_a_mail_is_rendered_at_the_call_and_sent_by_a_job(server: MailServer) -> None:
    app = App(server)
    names = ["ann@example.org"]
    await app.mailer.send_later(Mail(to=names, subject="Shipped", text="It is on its way."))
    names.append("eve@example.net")
    assert server.seen == []
    assert await app.queue.drain() == 1
    assert server.recipients == [["ann@example.org"]]
    assert server.mails[0]["Subject"] == "Shipped"


async def test_neither_the_mail_nor_whom_it_is_for_can_be_read_in_the_store(server: MailServer) -> None:
    app = App(server)
    await app.mailer.send_later(MAIL)
    (payload,) = await app.payloads()
    assert not any(word in payload for word in ("ann", "example", "Shipped", "way"))


async def test_a_mail_that_is_refused_for_now_is_tried_again_under_the_same_message_id(server: MailServer) -> None:
    app = App(server)
    await app.mailer.send_later(MAIL)
    server.answers_next = ["451 come back later", "cut", "cut before"]
    for _ in range(4):
        assert await app.queue.drain() == 1
        app.clock.move(3600)
    assert len(server.mails) == 1
    assert len(server.seen) == 3
    assert len(set(server.seen)) == 1


async def test_a_mail_that_is_refused_for_good_fails_at_once(server: MailServer) -> None:
    app = App(server)
    await app.mailer.send_later(MAIL)
    server.answers_next = ["554 no spam here"]
    await app.queue.drain()
    assert await app.errors() == ["the server refused the mail: 554 no spam here"]


async def test_recipients_who_were_refused_are_tried_again_by_themselves(server: MailServer) -> None:
    app = App(server, attempts=2)
    server.refuses_of = {"bob@example.org": "450 busy", "cid@example.org": "550 no such mailbox"}
    await app.mailer.send_later(
        Mail(to=["ann@example.org", "bob@example.org", "cid@example.org"], subject="Shipped", text="")
    )
    await app.queue.drain()
    assert server.recipients == [["ann@example.org"]]
    del server.refuses_of["bob@example.org"]
    app.clock.move(3600)
    await app.queue.drain()
    assert server.recipients == [["ann@example.org"], ["bob@example.org"]], "and nobody twice"
    assert len(set(server.seen)) == 1
    assert await app.errors() == ["cid@example.org was refused: 550 no such mailbox"]


async def test_in_a_transaction_the_mail_goes_with_its_commit_and_never_without(
    server: MailServer, session: AsyncSession, tmp_path: Path
) -> None:
    app = App(server, store=f"sqlite:///{tmp_path / 'shop.db'}")
    async with app.queue:
        await session.execute(text("create table orders (n integer)"))
        await session.commit()
        for number in (1, 2):
            await session.execute(text("insert into orders values (:n)"), {"n": number})
            await app.mailer.in_(session).send_later(Mail(to="ann@example.org", subject=f"Order {number}", text=""))
            await (session.rollback() if number == 1 else session.commit())
        assert await app.queue.drain() == 1
    assert [mail["Subject"] for mail in server.mails] == ["Order 2"]


def test_plain_functions_send_later_too(server: MailServer, tmp_path: Path) -> None:
    app = App(server, store=f"sqlite:///{tmp_path / 'shop.db'}")
    app.mailer.send_later_sync(MAIL)
    engine = create_engine(f"sqlite:///{tmp_path / 'shop.db'}")
    with Session(engine) as session:
        session.execute(text("create table orders (n integer)"))
        app.mailer.in_(session).send_later_sync(MAIL)
        session.commit()
    engine.dispose()

    async def drain() -> None:
        async with app.queue:
            await app.queue.drain()

    asyncio.run(drain())
    assert len(set(server.seen)) == 2


async def test_a_delayed_mail_waits(server: MailServer) -> None:
    app = App(server)
    await app.mailer.send_later(MAIL, delay=60)
    assert await app.queue.drain() == 0
    app.clock.move(60)
    assert await app.queue.drain() == 1


async def test_a_key_is_changed_without_losing_the_mail_that_waits(server: MailServer) -> None:
    before = App(server, OLD_KEY)
    await before.mailer.send_later(MAIL)
    after = App(server, KEY, OLD_KEY)
    after.queue.store = before.queue.store
    after.queue.home = before.queue.home
    await after.mailer.send_later(MAIL)
    sealed = [payload.strip('"') for payload in await after.payloads()]
    Fernet(OLD_KEY).decrypt(sealed[0])
    Fernet(KEY).decrypt(sealed[1])
    await after.queue.drain()
    assert len(server.mails) == 2


async def test_a_mail_that_no_key_opens_fails_at_once_and_says_what_to_do(server: MailServer) -> None:
    before, after = App(server, OLD_KEY), App(server, KEY)
    after.queue.store, after.queue.home = before.queue.store, before.queue.home
    pushed = await before.mailer.send_later(MAIL)
    assert await after.queue.drain() == 1
    (error,) = await after.errors()
    assert error == (
        "no key of Mailer(keys=...) opens this mail: put the key that it was sealed with at the end of keys, "
        f"then run it again: fastqueue retry {pushed.id}"
    )
    assert await before.queue.run_again(pushed.id)
    await before.queue.drain()
    assert len(server.mails) == 1, "nothing is lost"


async def test_a_mail_that_is_too_long_for_a_job_is_refused_with_what_to_do(server: MailServer) -> None:
    app = App(server)
    long = Attachment("film.mp4", bytes(700_000), "video/mp4")
    with pytest.raises(MailRefused, match=r"a job keeps 1048576: link to the file, or attach it in a handler and send"):
        await app.mailer.send_later(Mail(to="ann@example.org", subject="Film", text="", attachments=[long]))
    assert await app.payloads() == []
    short = Attachment("clip.mp4", bytes(500_000), "video/mp4")
    await app.mailer.send_later(Mail(to="ann@example.org", subject="Clip", text="", attachments=[short]))
    await app.queue.drain()
    assert next(server.mails[0].iter_attachments()).get_content() == bytes(500_000)


async def test_without_keys_nothing_waits_and_a_key_that_is_none_is_refused(server: MailServer) -> None:
    mailer = Mailer(server.url, sender="shop@example.com")
    assert list(mailer.kinds) == []
    with pytest.raises(OptionError, match=r"give Mailer\(keys=\[...\]\); python -c .* makes one"):
        await mailer.send_later(MAIL)
    with pytest.raises(OptionError, match="number 1 is no Fernet key") as refusal:
        Mailer(server.url, sender="shop@example.com", keys=[KEY, "hunter2"])
    assert "hunter2" not in str(refusal.value)


async def test_a_mail_that_cannot_be_sent_is_refused_before_it_is_pushed(server: MailServer) -> None:
    app = App(server)
    with pytest.raises(MailRefused, match="linefeed"):
        await app.mailer.send_later(Mail(to="ann@example.org", subject="a\nBcc: eve@example.net", text=""))
    assert await app.payloads() == []


@pytest.mark.processes
async def test_a_mail_goes_out_under_one_message_id_through_a_killed_process_refusals_and_cut_lines(
    server: MailServer, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path / 'shop.db'}"
    server.refuses_of = {"eve@example.net": "550 no such mailbox"}
    queue, mailer = queue_on(store, server.url, KEY)

    async def only_failed_jobs_are_left() -> bool:
        return {job.state(0) for job in await queue.store.jobs(now=0)} == {"failed"}

    async with queue:
        await mailer.send_later(Mail(to="eve@example.net", subject="Shipped", text=""))
        await mailer.send_later(MAIL)
        server.answers.clear()
        with process(store, server.url):
            assert await asyncio.to_thread(server.arrived.wait, PATIENCE), "and is killed before it hears an answer"
        server.answers_next = ["451 come back later", "cut before", "cut"]
        server.answers.set()
        with process(store, server.url):
            await until(only_failed_jobs_are_left)
        (failed,) = await queue.failed()

    assert failed.error == "eve@example.net was refused: 550 no such mailbox"
    assert server.recipients == [["ann@example.org"]]
    assert len(server.seen) == 3, "the killed process's, the one whose line was cut, and the one that was taken"
    assert len(set(server.seen)) == 1


@contextmanager
def process(store: str, url: str) -> Generator[None]:
    """A process that sends the store's mail, killed at the end."""
    sender = subprocess.Popen([sys.executable, "-m", "tests.mail.sender", store, url, KEY], cwd=ROOT)
    try:
        yield
    finally:
        sender.kill()
        sender.wait(PATIENCE)

"""Where mail goes: an SMTP server, or the outbox."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from aiosmtplib import SMTPConnectError, SMTPRecipientsRefused
from sqlalchemy import select

from example_app.mail import Mail, OutboxMailer, SmtpMailer
from example_app.models import OutboxMail
from fastqueue import Permanent
from tests.example_app.site import Site
from tests.example_app.smtp import MailServer, free_port, mail_server

MAIL = Mail(message_id="verify-mail.1.abc@example.com", to="ann@example.org", subject="Héllo", text="One\nTwo\n")


@pytest.fixture
def smtp() -> Iterator[tuple[MailServer, SmtpMailer]]:
    """A mail server, and a mailer that sends to it."""
    with mail_server() as (server, url):
        yield server, SmtpMailer(url, sender="App <app@example.com>", timeout=10)


async def test_a_mail_is_sent_whole(smtp: tuple[MailServer, SmtpMailer]) -> None:
    server, mailer = smtp
    await mailer.send(MAIL)
    (mail,) = server.mails
    assert mail["From"] == "App <app@example.com>"
    assert mail["To"] == "ann@example.org"
    assert mail["Subject"] == "Héllo"
    assert mail["Message-ID"] == "<verify-mail.1.abc@example.com>"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["Date"]
    assert mail.get_content().splitlines() == ["One", "Two"]


async def test_a_recipient_that_is_refused_for_good_is_permanent(smtp: tuple[MailServer, SmtpMailer]) -> None:
    server, mailer = smtp
    server.refuses = "550 no such mailbox"
    with pytest.raises(Permanent, match=r"ann@example\.org was refused: 550 no such mailbox"):
        await mailer.send(MAIL)


async def test_a_recipient_that_is_refused_for_now_is_tried_again(smtp: tuple[MailServer, SmtpMailer]) -> None:
    server, mailer = smtp
    server.refuses = "450 mailbox busy"
    with pytest.raises(SMTPRecipientsRefused):
        await mailer.send(MAIL)


async def test_a_server_that_is_down_is_tried_again() -> None:
    mailer = SmtpMailer(f"smtp://127.0.0.1:{free_port()}", sender="app@example.com", timeout=10)
    with pytest.raises(SMTPConnectError):
        await mailer.send(MAIL)


async def test_the_outbox_keeps_one_mail_for_a_message_id(site: Site) -> None:
    mailer = OutboxMailer(site.database)
    for _ in range(2):
        await mailer.send(MAIL)
    async with site.database.sessions() as db:
        (kept,) = await db.scalars(select(OutboxMail))
    assert (kept.message_id, kept.recipient, kept.subject, kept.text) == (
        MAIL.message_id,
        MAIL.to,
        MAIL.subject,
        MAIL.text,
    )

"""Where mail goes: an SMTP server, or the outbox."""

from __future__ import annotations

import re

from sqlalchemy import select

from example_app.mail import OutboxMailer, mailer_for
from example_app.models import OutboxMail
from example_app.settings import Settings
from fastqueue.mail import Mail
from tests.example_app.browser import Browser
from tests.example_app.site import Site
from tests.servers.smtp import mail_server

MAIL = Mail(message_id="verify-mail.1.abc@example.com", to="ann@example.org", subject="Héllo", text="One\nTwo\n")


async def test_with_an_smtp_url_mail_goes_to_that_server(site: Site) -> None:
    with mail_server() as (server, url):
        settings = Settings(smtp_url=url, mail_from="App <app@example.com>")
        await mailer_for(settings, site.database).send(MAIL)
    (mail,) = server.mails
    assert (mail["From"], mail["To"], mail["Subject"]) == ("App <app@example.com>", "ann@example.org", "Héllo")
    assert mail["Message-ID"] == "<verify-mail.1.abc@example.com>"
    assert mail.get_content().splitlines() == ["One", "Two"]


async def test_a_mail_that_the_outbox_refused_is_listed_and_sent_again(site: Site, browser: Browser) -> None:
    await browser.send("/outbox", {}, to="/outbox/shut")
    await browser.register("ann@example.com")
    await site.queue.drain()

    page = await browser.open("/outbox")
    assert await browser.outbox() == []
    assert "the outbox is shut, and took no mail" in page.text
    (job,) = re.findall(r'name="job" value="(\d+)"', page.text)

    await browser.send("/outbox", {}, to="/outbox/open")
    await browser.send("/outbox", {"job": job}, to="/outbox/again")
    await site.queue.drain()

    assert await browser.outbox() == [("ann@example.com", "Verify your email address")]
    assert "Failed" not in (await browser.open("/outbox")).text


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

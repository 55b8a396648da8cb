"""A mail that is sent now, through a real server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from email.message import EmailMessage, Message
from email.policy import compat32
from typing import Any

import pytest
from aiosmtplib import SMTPConnectError, SMTPDataError, SMTPRecipientsRefused, SMTPServerDisconnected

from fastqueue import Permanent
from fastqueue.errors import MailRefused, MissingDriver, OptionError
from fastqueue.mail import Attachment, Mail, Mailer
from tests.servers.smtp import MailServer, free_port, mail_server


@pytest.fixture
def server() -> Iterator[MailServer]:
    with mail_server() as (server, _):
        yield server


@pytest.fixture
def mailer(server: MailServer) -> Mailer:
    return Mailer(server.url, sender="Shop <shop@example.com>", timeout=10)


def mail(**more: Any) -> Mail:
    given: dict[str, Any] = {"to": "ann@example.org", "subject": "Shipped", "text": "On its way.\n", **more}
    return Mail(**given)


async def test_a_mail_arrives_whole(server: MailServer, mailer: Mailer) -> None:
    refused = await mailer.send(
        mail(
            to=["Ann <ann@example.org>", "bob@example.org"],
            cc=["cid@example.org"],
            bcc=["dan@example.org"],
            subject="Héllo",
            text="Ünï\n",
            html="<p>Ünï</p>",
            reply_to="help@example.com",
            message_id="one@example.com",
            attachments=[Attachment("bíll.pdf", b"\x00\xff\r\n", "application/pdf")],
        )
    )
    assert refused == {}
    (got,) = server.mails
    assert server.recipients == [["ann@example.org", "bob@example.org", "cid@example.org", "dan@example.org"]]
    assert (got["From"], got["Reply-To"]) == ("Shop <shop@example.com>", "help@example.com")
    assert (got["To"], got["Cc"], got["Bcc"]) == ("Ann <ann@example.org>, bob@example.org", "cid@example.org", None)
    assert (got["Subject"], got["Message-ID"]) == ("Héllo", "<one@example.com>")
    assert got["Date"]
    assert got["Auto-Submitted"] == "auto-generated"
    text, html, bill = got.get_body(("plain",)), got.get_body(("html",)), next(got.iter_attachments())
    assert text is not None
    assert html is not None
    assert (text.get_content().strip(), html.get_content().strip()) == ("Ünï", "<p>Ünï</p>")
    assert (bill.get_filename(), bill.get_content_type(), bill.get_content()) == (
        "bíll.pdf",
        "application/pdf",
        b"\x00\xff\r\n",
    )


async def test_a_message_of_the_standard_library_is_sent_as_it_is_and_left_as_it_was(
    server: MailServer, mailer: Mailer
) -> None:
    message = EmailMessage()
    message["From"], message["To"], message["Bcc"] = "me@example.com", "ann@example.org", "bob@example.org"
    message["X-Of-Mine"] = "kept"
    message.set_content("hello")
    before = message.as_string()
    await mailer.send(message)
    assert message.as_string() == before
    (got,) = server.mails
    assert (got["From"], got["X-Of-Mine"], got["Bcc"]) == ("me@example.com", "kept", None)
    assert got["Message-ID"].endswith("@example.com>")
    assert server.recipients == [["ann@example.org", "bob@example.org"]]


async def test_an_address_beyond_ascii_is_sent_where_the_server_takes_it(server: MailServer, mailer: Mailer) -> None:
    await mailer.send(mail(to="änn@exämple.org"))
    assert server.recipients == [["änn@exämple.org"]]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"subject": "Shipped\r\nBcc: eve@example.net"}, "linefeed or carriage return"),
        ({"subject": "Shipped\nBcc: eve@example.net"}, "linefeed or carriage return"),
        ({"to": "ann@example.org\r\nBcc: eve@example.net"}, "linefeed or carriage return"),
        ({"to": "ann@example.org, eve@example.net"}, "is not one address; give several as a list"),
        ({"to": "ann@example.org>, <eve@example.net"}, "is no address"),
        ({"to": "=?utf-8?q?ann=0d=0aBcc:_eve?= <ann@example.org>"}, ""),
        ({"to": "ann"}, "To: 'ann' is no address"),
        ({"cc": ["not an address"]}, "is no address"),
        ({"reply_to": "a@example.org\nX: y"}, "linefeed or carriage return"),
        ({"sender": "a@example.org, b@example.org"}, "is not one address"),
        ({"message_id": "a@b>\r\nBcc: eve@example.net"}, "linefeed or carriage return"),
        ({"to": []}, "it is for nobody; give it a To"),
        ({"to": ""}, "it is for nobody"),
        ({"text": "\ud800"}, "surrogates not allowed"),
        ({"attachments": [Attachment("a\r\nBcc: eve@example.net", b"")]}, ""),
        ({"attachments": [Attachment("a", b"", "pdf\r\nBcc: eve@example.net/x")]}, ""),
    ],
)
async def test_what_would_make_another_mail_of_it_is_refused_before_anything_is_sent(
    server: MailServer, mailer: Mailer, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(MailRefused, match=f"this mail cannot be sent: .*{message}"):
        await mailer.send(mail(**more))
    assert server.seen == []


async def test_a_message_that_checks_no_headers_is_refused(mailer: Mailer) -> None:
    message: Any = Message(policy=compat32)
    message["To"], message["Subject"] = "ann@example.org", "a\nBcc: eve@example.net"
    with pytest.raises(MailRefused, match=r"its policy checks no headers; make it by EmailMessage\(\)"):
        await mailer.send(message)


@pytest.mark.parametrize("answer", ["554 no spam here", "552 too large"])
async def test_a_mail_that_the_server_refuses_for_good_is_permanent(
    server: MailServer, mailer: Mailer, answer: str
) -> None:
    server.answers_next = [answer]
    with pytest.raises(Permanent, match=f"the server refused the mail: {answer}"):
        await mailer.send(mail())


async def test_a_mail_that_is_refused_for_now_and_a_line_that_is_cut_are_tried_again(
    server: MailServer, mailer: Mailer
) -> None:
    server.answers_next = ["451 come back later", "cut", "cut before"]
    with pytest.raises(SMTPDataError, match="come back later"):
        await mailer.send(mail())
    for _ in range(2):
        with pytest.raises((SMTPServerDisconnected, ConnectionError)):
            await mailer.send(mail())
    await mailer.send(mail())
    assert len(server.mails) == 1


async def test_recipients_who_are_all_refused_for_good_are_permanent_and_otherwise_tried_again(
    server: MailServer, mailer: Mailer
) -> None:
    server.refuses_of = {"ann@example.org": "550 no such mailbox", "bob@example.org": "550 nor this"}
    both = mail(to=["ann@example.org", "bob@example.org"])
    with pytest.raises(Permanent, match=r"ann@example\.org was refused: 550 no such .*; bob@example\.org was refused"):
        await mailer.send(both)
    server.refuses_of["bob@example.org"] = "450 busy"
    with pytest.raises(SMTPRecipientsRefused):
        await mailer.send(both)


async def test_recipients_of_whom_some_are_refused_are_answered(server: MailServer, mailer: Mailer) -> None:
    server.refuses_of = {"bob@example.org": "550 no such mailbox"}
    refused = await mailer.send(mail(to=["ann@example.org", "bob@example.org"]))
    assert refused == {"bob@example.org": "550 no such mailbox"}
    assert server.recipients == [["ann@example.org"]]


async def test_a_server_that_is_down_is_tried_again() -> None:
    mailer = Mailer(f"smtp://127.0.0.1:{free_port()}", sender="shop@example.com", timeout=10)
    with pytest.raises(SMTPConnectError):
        await mailer.send(mail())


@pytest.mark.parametrize(
    "url",
    [
        "localhost",
        "http://localhost",
        "smtp://",
        "smtp:localhost",
        "smtp://mail:port",
        "smtp://mail:99999",
        "smtp://[::1",
        "smtp://me:s3cret#x@h",
    ],
)
def test_a_url_that_is_none_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(OptionError, match=r"no smtp://host or smtps://host|cannot be read: look at its host and port"):
        Mailer(url, sender="shop@example.com")


def test_the_password_of_the_server_is_not_shown() -> None:
    assert "secret" not in repr(Mailer("smtp://me:secret@localhost", sender="shop@example.com"))


def test_a_package_that_is_missing_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("fastqueue.mail")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "aiosmtplib", None)
    with pytest.raises(MissingDriver, match=r"mail needs aiosmtplib: pip install 'fastqueue\[mail\]'"):
        __import__("fastqueue.mail")

"""A real SMTP server on loopback, which takes mail, refuses it, cuts the line, or keeps its client waiting."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

__all__ = ["MailServer", "free_port", "mail_server"]


class MailServer:
    """What the server does, and the mail that it took.

    Attributes:
        url: Where it is, as an SMTP_URL.
        mails: The mails, in the order in which they came.
        recipients: Whom each of them was for.
        refuses: What it answers to a recipient; None: it takes them all.
        refuses_of: What it answers to recipients of some addresses.
        answers_next: What it answers to the next mails, one each, instead of taking them; "cut" cuts the line after the
            mail has come, "cut before" when it is about to come.
        seen: The Message-ID of each mail that came, taken or not.
        arrived: Set when a mail has been sent to it, before it answers.
        answers: While it is clear, the server takes its time to answer.
    """

    def __init__(self) -> None:
        self.url = ""
        self.mails: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self.refuses: str | None = None
        self.refuses_of: dict[str, str] = {}
        self.answers_next: list[str] = []
        self.seen: list[str] = []
        self.arrived = threading.Event()
        self.answers = threading.Event()
        self.answers.set()

    async def handle_RCPT(
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if refusal := self.refuses_of.get(address, self.refuses):
            return refusal
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, _session: Session, envelope: Envelope) -> str:
        self.arrived.set()
        await asyncio.to_thread(self.answers.wait)
        assert isinstance(envelope.content, bytes)
        mail = message_from_bytes(envelope.content, policy=policy.default)
        self.seen.append(str(mail["Message-ID"]))
        answer = self.answers_next.pop(0) if self.answers_next else "250 OK"
        if answer == "cut":
            assert isinstance(server.transport, asyncio.Transport)
            server.transport.abort()
        if answer.startswith("2"):
            self.mails.append(mail)
            self.recipients.append(list(envelope.rcpt_tos))
        return answer


class _Server(SMTP):
    async def smtp_DATA(self, arg: str) -> None:
        handler = self.event_handler
        assert isinstance(handler, MailServer)
        if handler.answers_next and handler.answers_next[0] == "cut before":
            handler.answers_next.pop(0)
            await self.push("354 Go ahead")
            assert isinstance(self.transport, asyncio.Transport)
            self.transport.abort()
            return
        await super().smtp_DATA(arg)


class _Controller(Controller):
    def factory(self) -> SMTP:
        return _Server(self.handler, enable_SMTPUTF8=True)


@contextmanager
def mail_server(server: MailServer | None = None, *, port: int | None = None) -> Generator[tuple[MailServer, str]]:
    """Run a server; give it and its SMTP_URL."""
    server = server or MailServer()
    port = port or free_port()
    controller = _Controller(server, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        server.url = f"smtp://127.0.0.1:{port}"
        yield server, server.url
    finally:
        server.answers.set()
        controller.stop()


def free_port() -> int:
    """Find a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port

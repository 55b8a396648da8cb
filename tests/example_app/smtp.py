"""A real SMTP server on loopback, which takes mail, refuses it, or keeps its client waiting."""

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
        mails: The mails, in the order in which they came.
        refuses: What it answers to a recipient; None: it takes them all.
        arrived: Set when a mail has been sent to it, before it answers.
        answers: While it is clear, the server takes its time to answer.
    """

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.refuses: str | None = None
        self.arrived = threading.Event()
        self.answers = threading.Event()
        self.answers.set()

    async def handle_RCPT(
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if self.refuses:
            return self.refuses
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:
        self.arrived.set()
        await asyncio.to_thread(self.answers.wait)
        assert isinstance(envelope.content, bytes)
        self.mails.append(message_from_bytes(envelope.content, policy=policy.default))
        return "250 OK"


@contextmanager
def mail_server(server: MailServer | None = None, *, port: int | None = None) -> Generator[tuple[MailServer, str]]:
    """Run a server; give it and its SMTP_URL."""
    server = server or MailServer()
    port = port or free_port()
    controller = Controller(server, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield server, f"smtp://127.0.0.1:{port}"
    finally:
        server.answers.set()
        controller.stop()


def free_port() -> int:
    """Find a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port

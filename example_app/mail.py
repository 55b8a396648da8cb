"""Where mail goes: to an SMTP server, or to the outbox that a developer reads in the browser."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from typing import Protocol
from urllib.parse import unquote, urlsplit

from aiosmtplib import SMTP, SMTPException, SMTPRecipientRefused, SMTPRecipientsRefused
from sqlalchemy.exc import IntegrityError

from example_app.database import Database
from example_app.models import OutboxMail
from example_app.settings import Settings
from fastqueue import Permanent

__all__ = ["Mail", "Mailer", "OutboxMailer", "SmtpMailer", "mailer_for"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A mail.

    Attributes:
        message_id: Its Message-ID, without the angle brackets; the same whenever the same mail is sent again.
        to: The recipient's address.
        subject: One line.
        text: The body, as plain text.
    """

    message_id: str
    to: str
    subject: str
    text: str


class Mailer(Protocol):
    """Sends mail."""

    async def send(self, mail: Mail, /) -> None:
        """Send a mail; raise when it did not go."""


class SmtpMailer:
    """Sends mail through an SMTP server, with TLS wherever the server offers it.

    Args:
        url: As in SMTP_URL.
        sender: The From line.
        timeout: Seconds that each step of the talk with the server may take.
    """

    def __init__(self, url: str, *, sender: str, timeout: float = 20.0) -> None:
        self._url = urlsplit(url)
        self._sender = sender
        self._timeout = timeout

    async def send(self, mail: Mail, /) -> None:
        """Send a mail. A recipient that the server refuses for good is `Permanent`; all else is tried again."""
        server = self._server()
        try:
            await server.connect()
            await server.send_message(self._message(mail))
            # The mail has gone: that the goodbye fails is no reason to send it again.
            with suppress(SMTPException, OSError):
                await server.quit()
        except SMTPRecipientsRefused as error:
            if all(refused.code >= 500 for refused in error.recipients):
                raise Permanent(_said(error.recipients)) from error
            raise
        finally:
            # At once, and without a goodbye that a server which hangs would not answer.
            server.close()

    def _server(self) -> SMTP:
        return SMTP(
            hostname=self._url.hostname,
            port=self._url.port,
            username=self._url.username and unquote(self._url.username),
            password=self._url.password and unquote(self._url.password),
            use_tls=self._url.scheme == "smtps",
            timeout=self._timeout,
        )

    def _message(self, mail: Mail) -> EmailMessage:
        message = EmailMessage()
        message["From"] = self._sender
        message["To"] = mail.to
        message["Subject"] = mail.subject
        message["Date"] = formatdate()
        message["Message-ID"] = f"<{mail.message_id}>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(mail.text)
        return message


class OutboxMailer:
    """Keeps mail in the database, for the outbox page."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def send(self, mail: Mail, /) -> None:
        """Keep a mail. One that is there already stays as it is."""
        try:
            async with self._database.sessions.begin() as db:
                db.add(OutboxMail(message_id=mail.message_id, recipient=mail.to, subject=mail.subject, text=mail.text))
        except IntegrityError:
            return


def mailer_for(settings: Settings, database: Database) -> Mailer:
    """Return the mailer that the settings ask for."""
    if settings.smtp_url is None:
        return OutboxMailer(database)
    return SmtpMailer(settings.smtp_url, sender=settings.mail_from)


def _said(refused: list[SMTPRecipientRefused]) -> str:
    return "; ".join(f"{one.recipient} was refused: {one.code} {one.message}" for one in refused)

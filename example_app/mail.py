"""Where mail goes: to an SMTP server, or to the outbox that a developer reads in the browser."""

from __future__ import annotations

from typing import Protocol

from sqlalchemy.exc import IntegrityError

from example_app.database import Database
from example_app.models import OutboxMail, OutboxShut
from example_app.settings import Settings
from fastqueue import Permanent
from fastqueue.mail import Mail, Mailer

__all__ = ["OutboxMailer", "SendsMail", "mailer_for"]


class SendsMail(Protocol):
    """Sends mail; fastqueue's `Mailer` does."""

    async def send(self, mail: Mail, /) -> object:
        """Send a mail; raise when it did not go."""


class OutboxMailer:
    """Keeps mail in the database, for the outbox page."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def send(self, mail: Mail, /) -> None:
        """Keep a mail. One that is there already stays as it is.

        Raises:
            Permanent: The outbox is shut.
        """
        try:
            async with self._database.sessions.begin() as db:
                if await db.get(OutboxShut, 1):
                    raise Permanent("the outbox is shut, and took no mail")
                db.add(OutboxMail(message_id=mail.message_id, recipient=mail.to, subject=mail.subject, text=mail.text))
        except IntegrityError:
            return


def mailer_for(settings: Settings, database: Database) -> SendsMail:
    """Return the mailer that the settings ask for."""
    if settings.smtp_url is None:
        return OutboxMailer(database)
    return Mailer(settings.smtp_url, sender=settings.mail_from)

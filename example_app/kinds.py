"""The kinds of job: each sends one sort of mail, and makes what is secret in it only as the mail goes.

A job holds whom a mail is for, never a link: values lie in the database until their job has run, and for a month when
it has failed.
"""

from __future__ import annotations

import logging
from hashlib import sha256
from urllib.parse import urlsplit

from pydantic import BaseModel

from example_app import links
from example_app.database import Database
from example_app.mail import SendsMail
from example_app.models import User
from example_app.settings import Settings
from fastqueue import Kinds, Queue, Run, Unique
from fastqueue.mail import Mail
from fastqueue.starlette import CarryRequestID

__all__ = ["AccountExists", "EmailChanging", "MailKinds", "VerifyMail", "queue_for"]

logger = logging.getLogger(__name__)


def queue_for(settings: Settings) -> Queue:
    """Make the queue that the settings ask for, in the database that the app has."""
    return Queue(
        settings.database_url,
        workers=settings.workers,
        queues=settings.queues,
        grace=settings.shutdown_timeout,
        carry=[CarryRequestID()],
    )


class VerifyMail(BaseModel):
    """The mail with the link that verifies an address of an account."""

    user: int
    email: str


class AccountExists(BaseModel):
    """The mail that tells the owner of an address that somebody wanted an account with it."""

    user: int


class EmailChanging(BaseModel):
    """The mail to the old address of an account that wants another."""

    user: int
    new_email: str


class MailKinds:
    """The kinds, with handlers that have the app's database and mailer at hand.

    Args:
        database: Where the accounts are.
        mailer: What sends the mail.
        app_url: What links begin with.
    """

    def __init__(self, database: Database, mailer: SendsMail, *, app_url: str) -> None:
        self._database = database
        self._mailer = mailer
        self._app_url = app_url
        self.kinds = kinds = Kinds()
        # One mail waits for each address, however often it is asked for.
        self.verify_mail = kinds.handle("verify-mail", self._send_verify_mail, unique=Unique())
        self.account_exists = kinds.handle("account-exists-mail", self._send_account_exists, unique=Unique())
        self.email_changing = kinds.handle("email-changing-mail", self._send_email_changing, unique=Unique())

    async def _send_verify_mail(self, job: VerifyMail, run: Run) -> None:
        async with self._database.sessions.begin() as db:
            user = await db.get(User, job.user)
            if user is None or not _is_to_verify(user, job.email):
                return
            token = await links.make(db, user=user.id, email=job.email)
        await self._send(
            user,
            run,
            to=job.email,
            subject="Verify your email address",
            text=(
                "Hello,\n\nopen this link to verify that this address is yours:\n\n"
                f"{self._app_url}/verify?token={token}\n\n"
                "It works once, and for 24 hours. If you did not ask for it, do nothing, and nothing happens.\n"
            ),
        )

    async def _send_account_exists(self, job: AccountExists, run: Run) -> None:
        user = await self._user(job.user)
        if user is not None:
            await self._send(
                user,
                run,
                to=user.email,
                subject="You already have an account",
                text=(
                    "Hello,\n\nsomebody, perhaps you, gave this address for an account. It has one already, and\n"
                    f"nothing has changed. Sign in here:\n\n{self._app_url}/sign-in\n"
                ),
            )

    async def _send_email_changing(self, job: EmailChanging, run: Run) -> None:
        user = await self._user(job.user)
        if user is not None and user.new_email == job.new_email:
            await self._send(
                user,
                run,
                to=user.email,
                subject="Your email address is about to change",
                text=(
                    f"Hello,\n\nyour account is to use {job.new_email} instead of this address,\n"
                    "as soon as that one is verified. If it was not you who asked for it, sign in and cancel it:\n\n"
                    f"{self._app_url}/account\n"
                ),
            )

    async def _user(self, user_id: int) -> User | None:
        async with self._database.sessions() as db:
            return await db.get(User, user_id)

    async def _send(self, user: User, run: Run, *, to: str, subject: str, text: str) -> None:
        # The account's first moment tells this database from one that was thrown away and had the same numbers.
        digest = sha256(f"{run.kind} {run.id} {user.id} {user.created_at.isoformat()}".encode()).hexdigest()
        message_id = f"{run.kind}.{run.id}.{digest[:16]}@{urlsplit(self._app_url).hostname}"
        await self._mailer.send(Mail(message_id=message_id, to=to, subject=subject, text=text))
        logger.info("sent a mail kind=%s job=%d", run.kind, run.id)


def _is_to_verify(user: User, email: str) -> bool:
    return email == user.new_email or (email == user.email and user.verified_at is None)

"""The mailer: the talk with the server, and the job that has it again until it has gone well."""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import Any, TypeAlias
from urllib.parse import SplitResult, unquote

from aiosmtplib import SMTP, SMTPDataError, SMTPException, SMTPNotSupported, SMTPRecipientsRefused, SMTPSenderRefused
from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from fastqueue.errors import MailRefused, OptionError, Permanent
from fastqueue.job import Pushed
from fastqueue.kind import Kind, Run, Transaction
from fastqueue.kinds import Kinds
from fastqueue.limits import Limiter
from fastqueue.mail._render import Mail, Rendered, render
from fastqueue.pushing import Pushing
from fastqueue.settings import Seconds, as_seconds, split_url

__all__ = ["Later", "Mailer"]

log = logging.getLogger("fastqueue")

Message: TypeAlias = Mail | EmailMessage

_MAKE_A_KEY = 'python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"'


class Later:
    """Mail that is sent by a job: of the queue's own, or of a transaction of yours."""

    def __init__(self, mailer: Mailer, pushing: Pushing[str]) -> None:
        self._mailer, self._pushing = mailer, pushing

    def send_later(
        self, mail: Message, *, delay: Seconds | None = None, at: datetime | None = None
    ) -> Coroutine[Any, Any, Pushed]:
        """Render a mail now, and have a job send it. Awaited; a plain function uses `send_later_sync`.

        Args:
            mail: A `Mail`, or an `EmailMessage`; what it lacks of sender, date and Message-ID it is given.
            delay, at: As in a push. Default: at once.

        Raises:
            MailRefused: it cannot be sent, or is too long to be kept in a job. Nothing was pushed.
            StoreUnavailable: the store failed. Nothing was kept.
        """
        return self._pushing.push(self._mailer.seal(mail), delay=delay, at=at)

    def send_later_sync(self, mail: Message, *, delay: Seconds | None = None, at: datetime | None = None) -> Pushed:
        """`send_later` for plain functions: the job is kept when it returns."""
        return self._pushing.push_sync(self._mailer.seal(mail), delay=delay, at=at)


class Mailer:
    """Sends mail through an SMTP server, with TLS wherever the server offers it.

    Args:
        url: `smtp://user:password@host:port`, or `smtps://` for TLS from the first byte.
        sender: The From line of mails that have none of their own.
        keys: What mails that wait are encrypted with, as Fernet keys: the first encrypts, all decrypt. To change the
            key put a new one before the old, and take the old away when no mail waits or has failed under it. Default:
            none, and only `send` is there.
        start_tls: True: no mail without TLS. False: none. Default: where the server offers it.
        timeout: How long each step of the talk with the server may take, in seconds. Default 20 s.
        name: The name of the kind that sends: stable across deploys. Default "send-mail".
        queue, attempts, at_once, rate: Options of that kind, as in `handle`.

    Attributes:
        kinds: What `queue.include` is given.

    Raises:
        OptionError: a URL or a key that is none.

    Example:
        >>> mailer = Mailer("smtp://localhost", sender="shop@example.com", keys=[Fernet.generate_key()])
        >>> [kind.name for kind in mailer.kinds]
        ['send-mail']
    """

    def __init__(
        self,
        url: str,
        *,
        sender: str,
        keys: Sequence[str | bytes] = (),
        start_tls: bool | None = None,
        timeout: Seconds = 20,
        name: str = "send-mail",
        queue: str | None = None,
        attempts: int | None = None,
        at_once: int | None = None,
        rate: Limiter | None = None,
    ) -> None:
        self._url = _address(url)
        self._sender = sender
        self._start_tls = start_tls
        self._timeout = as_seconds("timeout", timeout)
        self.kinds = Kinds()
        self._keys = _fernet(keys)
        self._kind: Kind[str] | None = None
        if self._keys is not None:
            self._kind = self.kinds.handle(
                name, self._send_sealed, queue=queue, attempts=attempts, at_once=at_once, rate=rate
            )

    def __repr__(self) -> str:
        return f"<Mailer by {self._url.hostname}>"

    async def send(self, mail: Message) -> dict[str, str]:
        """Send a mail now.

        Returns:
            The recipients that the server refused while it took others, each with what it said.

        Raises:
            MailRefused: it cannot be sent.
            Permanent: the server refuses it, or all its recipients, for good.
            SMTPException, OSError: it did not go this time.
        """
        return await self._deliver(render(mail, sender=self._sender, now=datetime.now(UTC)))

    def send_later(
        self, mail: Message, *, delay: Seconds | None = None, at: datetime | None = None
    ) -> Coroutine[Any, Any, Pushed]:
        """See `Later.send_later`: by a job in the queue's own store."""
        return Later(self, self._sending()).send_later(mail, delay=delay, at=at)

    def send_later_sync(self, mail: Message, *, delay: Seconds | None = None, at: datetime | None = None) -> Pushed:
        """`send_later` for plain functions: the job is kept when it returns."""
        return Later(self, self._sending()).send_later_sync(mail, delay=delay, at=at)

    def in_(self, tx: Transaction, /) -> Later:
        """Mail that is sent if a transaction of yours commits, and never if it does not.

        Args:
            tx: Whatever `Kind.in_` takes.

        Raises:
            OptionError: the mailer has no keys to encrypt with.
            RegistrationError: no queue includes the mailer's kinds yet.
            TransactionRefused, Unsupported: as `Kind.in_` does.
        """
        return Later(self, self._sending().in_(tx))

    def seal(self, mail: Message) -> str:
        """A mail as its job keeps it: rendered and encrypted.

        Raises:
            MailRefused: it cannot be sent, or is too long to be kept in a job.
        """
        kind, rendered = self._sending(), render(mail, sender=self._sender, now=datetime.now(UTC))
        sealed = self._sealed(rendered)
        if len(sealed) + 2 > kind.codec.max_bytes:
            raise MailRefused(
                f"this mail is {len(rendered.content)} bytes with what is attached, {len(sealed) + 2} when encrypted, "
                f"and a job keeps {kind.codec.max_bytes}: link to the file, or attach it in a handler and send()"
            )
        return sealed

    def _sealed(self, rendered: Rendered) -> str:
        assert self._keys is not None, "without keys there is no kind to seal for"
        return self._keys.encrypt(rendered.dump()).decode()

    def _sending(self) -> Kind[str]:
        if self._kind is None:
            raise OptionError(f"a mail that waits is kept encrypted: give Mailer(keys=[...]); {_MAKE_A_KEY} makes one")
        return self._kind

    async def _send_sealed(self, sealed: str, run: Run) -> None:
        assert self._keys is not None, "without keys there is no kind to run"
        try:
            rendered = Rendered.load(self._keys.decrypt(sealed))
        except InvalidToken:
            raise Permanent(
                "no key of Mailer(keys=...) opens this mail: put the key that it was sealed with at the end of keys, "
                f"then run it again: fastqueue retry {run.id}"
            ) from None
        refused = await self._deliver(rendered)
        if refused:
            # A job of their own: this one, run again, would send the mail twice to those who have it.
            rest = Rendered(rendered.sender, tuple(refused), rendered.content)
            pushed = await self._sending().push(self._sealed(rest), queue=run.queue)
            log.warning("a mail was refused to %d of its recipients: job=%d tries them again", len(refused), pushed.id)

    async def _deliver(self, mail: Rendered) -> dict[str, str]:
        server = self._server()
        ascii_only = all(address.isascii() for address in (mail.sender, *mail.recipients))
        try:
            await server.connect()
            try:
                refused, _ = await server.sendmail(
                    mail.sender, mail.recipients, mail.content, mail_options=() if ascii_only else ("SMTPUTF8",)
                )
            except (SMTPSenderRefused, SMTPDataError) as error:
                if error.code >= 500:
                    raise Permanent(f"the server refused the mail: {error.code} {error.message}") from error
                raise
            except SMTPRecipientsRefused as error:
                if all(one.code >= 500 for one in error.recipients):
                    said = "; ".join(
                        f"{one.recipient} was refused: {one.code} {one.message}" for one in error.recipients
                    )
                    raise Permanent(said) from error
                raise
            except SMTPNotSupported as error:
                raise Permanent(error) from error
            # The mail has gone: that the goodbye fails is no reason to send it again.
            with suppress(SMTPException, OSError):
                await server.quit()
            return {address: f"{answer.code} {answer.message}" for address, answer in refused.items()}
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
            start_tls=False if self._url.scheme == "smtps" else self._start_tls,
            timeout=self._timeout,
        )


def _address(url: str) -> SplitResult:
    parts = split_url("the mailer's URL", url)
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname:
        raise OptionError("the mailer's URL is no smtp://host or smtps://host; a port, user and password may be in it")
    return parts


def _fernet(keys: Sequence[str | bytes]) -> MultiFernet | None:
    if isinstance(keys, str | bytes):
        keys = [keys]
    made: list[Fernet] = []
    for place, key in enumerate(keys):
        try:
            made.append(Fernet(key))
        except (ValueError, TypeError) as error:
            raise OptionError(f"Mailer(keys=...): number {place} is no Fernet key; {_MAKE_A_KEY} makes one") from error
    return MultiFernet(made) if made else None

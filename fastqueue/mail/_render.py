"""A mail as an app writes it, and as a server is given it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from email.errors import InvalidHeaderDefect, MessageError
from email.headerregistry import AddressHeader, BaseHeader
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8, EmailPolicy
from email.utils import format_datetime, make_msgid

from fastqueue.errors import MailRefused

__all__ = ["Attachment", "Mail", "Rendered", "render"]


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that goes with a mail.

    Args:
        name: What it is called, such as "invoice.pdf".
        content: Its bytes.
        type: Its media type. Default "application/octet-stream".

    Example:
        >>> bill = Attachment("bill.pdf", b"%PDF-1.7", "application/pdf")
    """

    name: str
    content: bytes
    type: str = "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A mail, for whom the standard library's `EmailMessage`, which every `send` takes too, is more than is needed.

    Args:
        to: An address, "ann@example.org" or "Ann <ann@example.org>", or several.
        subject: One line.
        text: The body as plain text.
        html: The same as HTML. Default: none.
        cc, bcc: Further addresses; those in `bcc` are seen by nobody. Default: none.
        reply_to: Where answers go. Default: the sender.
        sender: The From line. Default: the mailer's.
        message_id: Without its angle brackets. Default: a new one.
        attachments: Files that go with it. Default: none.

    Example:
        >>> mail = Mail(to="Ann <ann@example.org>", subject="Your order 7", text="Thank you.", sender="a@example.com")
        >>> mail.message()["To"]
        'Ann <ann@example.org>'
    """

    to: str | Sequence[str]
    subject: str
    text: str
    html: str | None = None
    cc: Sequence[str] = ()
    bcc: Sequence[str] = ()
    reply_to: str | None = None
    sender: str | None = None
    message_id: str | None = None
    attachments: Sequence[Attachment] = ()

    def message(self) -> EmailMessage:
        """The mail as an `EmailMessage`.

        Raises:
            ValueError: a line break in a header, an address that is none, or one that is several.
        """
        message = EmailMessage()
        headers = {
            "From": _one(self.sender),
            "To": ", ".join(map(_one, [self.to] if isinstance(self.to, str) else self.to)),
            "Cc": ", ".join(map(_one, self.cc)),
            "Bcc": ", ".join(map(_one, self.bcc)),
            "Reply-To": _one(self.reply_to),
            "Subject": self.subject,
            "Message-ID": self.message_id and f"<{self.message_id}>",
            "Auto-Submitted": "auto-generated",  # so that answering machines leave it alone
        }
        for name, value in headers.items():
            if value:
                message[name] = value
        message.set_content(self.text)
        if self.html is not None:
            message.add_alternative(self.html, subtype="html")
        for attached in self.attachments:
            main, _, sub = attached.type.partition("/")
            message.add_attachment(attached.content, maintype=main, subtype=sub, filename=attached.name)
        return message


@dataclass(frozen=True, slots=True)
class Rendered:
    """A mail as a server is given it: its envelope, and its bytes."""

    sender: str
    recipients: tuple[str, ...]
    content: bytes

    def dump(self) -> bytes:
        """The whole of it as bytes."""
        return json.dumps([self.sender, *self.recipients]).encode() + b"\n" + self.content

    @classmethod
    def load(cls, data: bytes) -> Rendered:
        """What was dumped."""
        envelope, _, content = data.partition(b"\n")
        sender, *recipients = json.loads(envelope)
        return cls(sender, tuple(recipients), content)


def render(mail: Mail | EmailMessage, *, sender: str, now: datetime) -> Rendered:
    """A mail as it goes out, with what it lacks: its sender, its date and its Message-ID.

    Raises:
        MailRefused: a header has a line break, an address is none, or it is for nobody.
    """
    try:
        message = mail.message() if isinstance(mail, Mail) else deepcopy(mail)
        if not isinstance(message.policy, EmailPolicy):
            raise ValueError("its policy checks no headers; make it by EmailMessage() without a policy")
        if "From" not in message:
            message["From"] = sender
        (origin,) = _addresses(message, "From")
        recipients = tuple(dict.fromkeys(_addresses(message, "To", "Cc", "Bcc")))
        if not recipients:
            raise ValueError("it is for nobody; give it a To")
        del message["Bcc"]
        if "Date" not in message:
            message["Date"] = format_datetime(now)
        if "Message-ID" not in message:
            message["Message-ID"] = make_msgid(domain=origin.rpartition("@")[2])
        ascii_only = all(address.isascii() for address in (origin, *recipients))
        # 7bit, since whether the server takes more is only known when it is sent.
        policy = (SMTP if ascii_only else SMTPUTF8).clone(cte_type="7bit")
        return Rendered(origin, recipients, message.as_bytes(policy=policy))
    except (ValueError, LookupError, TypeError, MessageError) as error:
        raise MailRefused(f"this mail cannot be sent: {error}") from error


def _one(address: str | None) -> str:
    """One address: a text from a form may hold a comma, and with it a second one."""
    if not address:
        return ""
    message = EmailMessage()
    message["To"] = address
    if len(_addresses(message, "To")) != 1:
        raise ValueError(f"{address!r} is not one address; give several as a list")
    return address


def _addresses(message: EmailMessage, *names: str) -> list[str]:
    found: list[str] = []
    for name in names:
        for header in message.get_all(name, []):
            if not (isinstance(header, BaseHeader) and isinstance(header, AddressHeader)):
                raise TypeError(f"its {name} is no list of addresses")
            broken = any(isinstance(defect, InvalidHeaderDefect) for defect in header.defects)
            if broken or not all(one.username and one.domain for one in header.addresses):
                raise ValueError(f"{name}: {str(header)!r} is no address; write it as ann@example.org")
            found += [one.addr_spec for one in header.addresses]
    return found

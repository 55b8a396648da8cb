"""The tables of the app. The jobs have their own, made by fastqueue in the same database."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import DateTime, Dialect, ForeignKey, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

__all__ = ["Base", "KeptSecret", "Link", "OutboxMail", "OutboxShut", "Tries", "User"]


class AwareDateTime(TypeDecorator[datetime]):
    """An aware datetime, kept in UTC by databases that keep no time zone."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return value and value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return value and value.replace(tzinfo=UTC)


class Base(DeclarativeBase):
    """What the tables share."""

    type_annotation_map = {datetime: AwareDateTime}  # noqa: RUF012 - SQLAlchemy reads it from the class


class User(Base):
    """An account.

    Attributes:
        email: The address as it was typed, where mail goes.
        email_key: The address in lower case: no two accounts share one.
        new_email: The address that replaces `email` once it is verified.
        verified_at: When the owner first showed that they read `email`. None: they cannot sign in yet.
        session_version: Sessions of another version are over.
    """

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(String(254))
    email_key: Mapped[str] = mapped_column(String(254), unique=True)
    new_email: Mapped[str | None] = mapped_column(String(254))
    password_hash: Mapped[str] = mapped_column(String(255))
    verified_at: Mapped[datetime | None]
    session_version: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime] = mapped_column(default=lambda: datetime.now(UTC))


class Link(Base):
    """A link that was mailed: it proves that who opens it reads `email`. Its token is kept as a hash only."""

    __tablename__ = "links"

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    email: Mapped[str] = mapped_column(String(254))
    expires_at: Mapped[datetime] = mapped_column(index=True)


class Tries(Base):
    """How often something was tried in a window of time. The key is a hash: no addresses are gathered here."""

    __tablename__ = "tries"

    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    count: Mapped[int]
    ends_at: Mapped[datetime] = mapped_column(index=True)


class OutboxMail(Base):
    """A mail that no server was there to take. One for each Message-ID, however often its job runs."""

    __tablename__ = "outbox"

    id: Mapped[int] = mapped_column(primary_key=True)
    message_id: Mapped[str] = mapped_column(String(255), unique=True)
    recipient: Mapped[str] = mapped_column(String(254))
    subject: Mapped[str] = mapped_column(String(255))
    text: Mapped[str] = mapped_column(Text)
    sent_at: Mapped[datetime] = mapped_column(default=lambda: datetime.now(UTC))


class OutboxShut(Base):
    """There is one while the outbox refuses mail, so that a developer sees what becomes of it."""

    __tablename__ = "outbox_shut"

    id: Mapped[int] = mapped_column(primary_key=True)


class KeptSecret(Base):
    """A secret that the app made for itself."""

    __tablename__ = "secrets"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[str] = mapped_column(String(255))

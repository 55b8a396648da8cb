"""What the environment says, checked before anything starts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from fastqueue.environ import QueueSettings
from fastqueue.errors import OptionError

__all__ = ["Settings", "SettingsError"]

T = TypeVar("T")
D = TypeVar("D")

_SECRETS = {"DATABASE_URL", "SECRET_KEY", "SMTP_URL"}


class SettingsError(ValueError):
    """A setting that cannot be; the message names the variable, its value and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How an instance of the app runs.

    Attributes:
        database_url: DATABASE_URL. Keeps the accounts and the jobs: `sqlite:///file`, `postgresql://`, `mysql://`.
        app_url: APP_URL. Where browsers reach the app; links in mails begin with it. https makes cookies Secure.
        secret_key: SECRET_KEY. Signs the session cookie. None: one is made and kept in the database.
        smtp_url: SMTP_URL. `smtp://user:password@host:port` or `smtps://`. None: mail is kept for `/outbox`.
        mail_from: MAIL_FROM. The sender of the mails.
        workers: QUEUE_WORKERS or QUEUE_CONCURRENCY. Jobs run at once beside the server.
        in_serve: False when QUEUE_IN_SERVE is false or QUEUE_WORKERS is 0: this instance only pushes.
        queues: QUEUE_NAMES. The queues that the workers serve, in order of preference. None: fastqueue's own.
        shutdown_timeout: SHUTDOWN_TIMEOUT. Seconds that requests, and after them running jobs, have to finish.
        host: HOST. The address that `python -m example_app` listens on.
        port: PORT. Its port.
    """

    database_url: str = field(default="sqlite:///example.db", repr=False)
    app_url: str = "http://127.0.0.1:8000"
    secret_key: str | None = field(default=None, repr=False)
    smtp_url: str | None = field(default=None, repr=False)
    mail_from: str = "Example app <no-reply@example.com>"
    workers: int = 4
    in_serve: bool = True
    queues: tuple[str, ...] | None = None
    shutdown_timeout: float = 10.0
    host: str = "127.0.0.1"
    port: int = 8000

    @property
    def secure(self) -> bool:
        """Whether browsers reach the app by https."""
        return self.app_url.startswith("https://")

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Read the settings from environment variables; one that is empty counts as not set.

        Args:
            environ: The variables. Default: the process's own.

        Raises:
            SettingsError: A value cannot be; nothing has been started yet.

        Example:
            >>> Settings.from_environ({"QUEUE_WORKERS": "0"}).in_serve
            False
        """
        read = _Reader(environ)
        try:
            queue = QueueSettings.from_environ(environ)
        except OptionError as error:
            raise SettingsError(str(error)) from None
        port = read("PORT", _port, 8000)
        return cls(
            database_url=read("DATABASE_URL", _database_url, "sqlite:///example.db"),
            app_url=read("APP_URL", _app_url, f"http://127.0.0.1:{port}"),
            secret_key=read("SECRET_KEY", _secret_key, None),
            smtp_url=read("SMTP_URL", _smtp_url, None),
            mail_from=read("MAIL_FROM", _line, "Example app <no-reply@example.com>"),
            workers=queue.workers or 4,
            in_serve=queue.in_serve,
            queues=queue.queues,
            shutdown_timeout=10.0 if queue.grace is None else queue.grace,
            host=read("HOST", _line, "127.0.0.1"),
            port=port,
        )


class _Reader:
    """Reads variables one by one, and names the one that cannot be."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def __call__(self, name: str, parse: Callable[[str], T], default: D) -> T | D:
        text = self._environ.get(name, "").strip()
        if not text:
            return default
        try:
            return parse(text)
        except ValueError as error:
            shown = "its value" if name in _SECRETS else repr(text)
            raise SettingsError(f"{name} cannot be {shown}: {error}") from None


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise ValueError("give a port from 1 to 65535")
    return int(text)


def _line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("give one line of plain text")
    return text


def _secret_key(text: str) -> str:
    if len(text) < 32:
        raise ValueError(
            "give at least 32 characters; python -c 'import secrets; print(secrets.token_urlsafe(32))' makes some"
        )
    return text


def _app_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
        raise ValueError("give where browsers reach the app, without a path, such as https://app.example.com")
    return f"{parts.scheme}://{parts.netloc}"


def _smtp_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname or parts.path not in ("", "/"):
        raise ValueError("give smtp://user:password@host:port, or smtps:// for TLS from the first byte")
    _ = parts.port
    return text


def _database_url(text: str) -> str:
    remedy = "give sqlite:///file.db, postgresql://user:password@host/name or mysql://user:password@host/name"
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise ValueError(remedy) from None
    if url.get_backend_name() not in ("sqlite", "postgresql", "mysql"):
        raise ValueError(remedy)
    if not url.database or url.database == ":memory:":
        raise ValueError(f"it names no database that outlives the process; {remedy}")
    return text

"""What the environment says, checked before anything starts."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

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
        workers: QUEUE_WORKERS or QUEUE_CONCURRENCY. Jobs run at once beside the server. 0: this instance only pushes.
        in_serve: QUEUE_IN_SERVE. False: the server runs no workers, whatever `workers` says.
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
    def runs_workers(self) -> bool:
        """Whether jobs run beside this instance's server."""
        return self.in_serve and self.workers > 0

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
            >>> Settings.from_environ({"QUEUE_WORKERS": "0"}).runs_workers
            False
        """
        read = _Reader(environ)
        port = read("PORT", _port, 8000)
        return cls(
            database_url=read("DATABASE_URL", _database_url, "sqlite:///example.db"),
            app_url=read("APP_URL", _app_url, f"http://127.0.0.1:{port}"),
            secret_key=read("SECRET_KEY", _secret_key, None),
            smtp_url=read("SMTP_URL", _smtp_url, None),
            mail_from=read("MAIL_FROM", _line, "Example app <no-reply@example.com>"),
            workers=_workers(read),
            in_serve=read("QUEUE_IN_SERVE", _switch, True),
            queues=read("QUEUE_NAMES", _names, None),
            shutdown_timeout=read("SHUTDOWN_TIMEOUT", _seconds, 10.0),
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


def _workers(read: _Reader) -> int:
    """The two names of one setting: they may both be there, but have to agree."""
    one = read("QUEUE_WORKERS", _count, None)
    other = read("QUEUE_CONCURRENCY", _count, None)
    if one is not None and other is not None and one != other:
        raise SettingsError(
            f"QUEUE_WORKERS is {one} and QUEUE_CONCURRENCY is {other}, and they mean the same: set one of them"
        )
    return next((count for count in (one, other) if count is not None), 4)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError("give a whole number, 0 or more; 0 makes an instance that only pushes")
    return int(text)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise ValueError("give a port from 1 to 65535")
    return int(text)


def _seconds(text: str) -> float:
    remedy = "give seconds, 0 or more, such as 10 or 2.5"
    try:
        seconds = float(text)
    except ValueError:
        raise ValueError(remedy) from None
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError(remedy)
    return seconds


def _switch(text: str) -> bool:
    words = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if text.lower() not in words:
        raise ValueError("give true or false")
    return words[text.lower()]


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise ValueError("give names of queues, each once, with commas between them, such as high,default")
    return names


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

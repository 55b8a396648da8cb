"""Where the server is: a URL as asyncpg reads it, and as a person may see it."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from fastqueue.errors import OptionError
from fastqueue.settings import split_url

__all__ = ["Address"]

_SCHEMES = ("postgres", "postgresql")
_SQLALCHEMY_ONLY = {"async_fallback", "prepared_statement_cache_size", "prepared_statement_name_func"}


class Address(NamedTuple):
    """A server and a database on it.

    Attributes:
        dsn: The URL for the driver.
        shown: The same for messages, without the password and what follows the database's name.
    """

    dsn: str
    shown: str

    @classmethod
    def read(cls, what: str, url: str) -> Address:
        """The address that a URL names; a driver in it, as SQLAlchemy writes, is ignored.

        Raises:
            OptionError: it is no URL of PostgreSQL; the message names `what`, and never the password.
        """
        parts = split_url(what, url)
        scheme = parts.scheme.partition("+")[0]
        if scheme not in _SCHEMES:
            raise OptionError(
                f"{what} begins with {parts.scheme or 'no scheme'!r}; it takes a URL such as "
                "postgresql://user:password@host:5432/database"
            )
        # SQLAlchemy's asyncpg dialect says `ssl` where everything else says `sslmode`.
        query = [
            ("sslmode" if name == "ssl" else name, value)
            for name, value in parse_qsl(parts.query, keep_blank_values=True)
            if name not in _SQLALCHEMY_ONLY
        ]
        plain = parts._replace(scheme="postgresql", query=urlencode(query))
        user, at, place = parts.netloc.rpartition("@")
        netloc = f"{user.partition(':')[0]}{at}{place}"
        return cls(_url(plain), _url(plain._replace(netloc=netloc, query="", fragment="")))


def _url(parts: tuple[str, str, str, str, str]) -> str:
    scheme, netloc, path, query, _ = parts
    # urlunsplit leaves the // off where no host is named, and the driver then reads no URL.
    return f"{scheme}://{netloc}{path}" + (f"?{query}" if query else "")

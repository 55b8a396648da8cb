"""Where the server is: a URL as redis-py reads it, and as a person may see it."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from fastqueue.errors import OptionError
from fastqueue.settings import split_url

__all__ = ["PREFIX", "Address"]

PREFIX = "fastqueue"

_SCHEMES = ("redis", "rediss", "unix")
_PREFIX = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


class Address(NamedTuple):
    """A server and a set of keys on it.

    Attributes:
        url: The URL for the driver.
        shown: The same for messages, without the password and what follows the "?".
        prefix: What the keys begin with.
    """

    url: str
    shown: str
    prefix: str

    @classmethod
    def read(cls, url: str, prefix: str | None = None) -> Address:
        """The address that a URL names; a driver in it, as SQLAlchemy writes, is ignored.

        Raises:
            OptionError: it is no URL of Redis, or the prefix cannot begin keys; the password is never shown.
        """
        parts = split_url("url", url)
        scheme = parts.scheme.partition("+")[0]
        if scheme not in _SCHEMES:
            raise OptionError(
                f"url begins with {parts.scheme or 'no scheme'!r}; it takes a URL such as redis://user:password@host:6379/0"
                ", rediss://... for TLS, or unix:///path/to/redis.sock"
            )
        if scheme != "unix" and not re.fullmatch(r"/?\d*", parts.path):
            # Not shown, since it may be the rest of a password with a slash in it.
            raise OptionError("url names no database of Redis, which numbers them: redis://user:password@host:6379/0")
        query = parse_qsl(parts.query, keep_blank_values=True)
        named = [value for name, value in query if name == "prefix"]
        prefix = prefix if prefix is not None else named[-1] if named else PREFIX
        if not _PREFIX.fullmatch(prefix):
            raise OptionError(
                f"prefix={prefix!r} cannot begin keys; it takes 1 to 64 letters, digits and signs of _.:-"
            )
        plain = parts._replace(scheme=scheme, query=urlencode([item for item in query if item[0] != "prefix"]))
        user, at, place = parts.netloc.rpartition("@")
        name = user.partition(":")[0]
        shown = plain._replace(netloc=f"{name}{at}{place}" if name else place, query="", fragment="")
        return cls(_url(plain), _url(shown), prefix)


def _url(parts: tuple[str, str, str, str, str]) -> str:
    scheme, netloc, path, query, _ = parts
    # urlunsplit leaves the // off where no host is named.
    return f"{scheme}://{netloc}{path}" + (f"?{query}" if query else "")

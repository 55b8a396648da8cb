"""Where the server is: a URL as the driver wants it, and as a person may see it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from fastqueue.errors import OptionError
from fastqueue.settings import split_url

__all__ = ["Address", "refuse_old"]

_OLDEST = {"MySQL": (8, 0, 19), "MariaDB": (10, 6, 0)}

_SCHEMES = ("mysql", "mariadb")
_FILES = {"ssl_ca": "ca", "ssl_cert": "cert", "ssl_key": "key"}
_YES = ("true", "1", "yes", "required")


class Address(NamedTuple):
    """A server and a database on it.

    Attributes:
        arguments: What the driver's `connect` takes.
        shown: The URL for messages, without the password and what follows the database's name.
    """

    arguments: Mapping[str, Any]
    shown: str

    @classmethod
    def read(cls, url: str) -> Address:
        """The address that a URL names; a driver in it, as SQLAlchemy writes, is ignored.

        After a "?" it takes `unix_socket`, `ssl` and `ssl_mode` ("required"), `ssl_ca`, `ssl_cert` and `ssl_key`, and
        ignores what is not about encryption.

        Raises:
            OptionError: it is no URL of MySQL, names no database, or asks for an encryption that is not known here;
                the message never holds the password.
        """
        parts = split_url("dsn", url)
        if parts.scheme.partition("+")[0] not in _SCHEMES:
            raise OptionError(
                f"dsn begins with {parts.scheme or 'no scheme'!r}; it takes a URL such as "
                "mysql://user:password@host:3306/database"
            )
        user, at, place = parts.netloc.rpartition("@")
        shown = f"mysql://{user.partition(':')[0]}{at}{place}{parts.path}"
        database = unquote(parts.path.lstrip("/"))
        if not database:
            raise OptionError(f"dsn {shown!r} names no database; write it after the host: {shown.rstrip('/')}/app")
        query = dict(parse_qsl(parts.query))
        arguments: dict[str, Any] = {
            "host": parts.hostname or "127.0.0.1",
            "port": parts.port or 3306,
            "user": unquote(parts.username or "root"),
            "password": unquote(parts.password or ""),
            "database": database,
        }
        if "unix_socket" in query:
            arguments["unix_socket"] = query["unix_socket"]
        return cls(arguments | _encryption(query), shown)


def _encryption(query: Mapping[str, str]) -> dict[str, Any]:
    files: dict[str, str] = {}
    wanted = False
    for name, value in query.items():
        if name in _FILES:
            files[_FILES[name]] = value
        elif name in ("ssl", "ssl_mode", "ssl-mode"):
            if value.lower() not in (*_YES, "false", "0", "no", "disabled"):
                raise OptionError(f"dsn has {name}={value!r}; it takes 'required' or 'disabled', and ssl_ca to verify")
            wanted = value.lower() in _YES
        elif name.startswith(("ssl", "tls")):
            raise OptionError(f"dsn has {name!r}; about encryption it takes ssl, ssl_ca, ssl_cert and ssl_key")
    return {"ssl": files or True} if wanted or files else {}


def refuse_old(version: str) -> None:
    """Refuse a server that does not know all that the store says to it; `version` is how the server names its own.

    Raises:
        OptionError: it is older than MySQL 8.0.19 or MariaDB 10.6.
    """
    name = "MariaDB" if "MariaDB" in version else "MySQL"
    # MariaDB puts a number before its own, for programs that look at the first digit only.
    version = version.removeprefix("5.5.5-")
    numbers = tuple(map(int, re.findall(r"\d+", version)[:3]))
    if numbers < _OLDEST[name]:
        oldest = " or ".join(f"{name} {'.'.join(map(str, least))}" for name, least in _OLDEST.items())
        raise OptionError(f"dsn leads to {name} {version}; the store needs {oldest}, or newer: upgrade the server")

"""MySQL and MariaDB servers, and fresh databases on them."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from tests.servers.throwaway import Sandbox, find_program, free_port, sandbox

STANDARD = "mysql://root@127.0.0.1:3306/mysql"


class Binaries(NamedTuple):
    """MariaDB's programs: the one that makes the system tables, and the server."""

    install: Path
    server: Path


def running() -> str | None:
    """The server on the standard port, if it lets `root` in without a password."""
    try:
        connect(STANDARD).close()
    except pymysql.OperationalError:
        return None
    return STANDARD


def system_binaries() -> Binaries | None:
    """This machine's MariaDB."""
    install, server = find_program("mariadb-install-db"), find_program("mariadbd")
    return Binaries(install, server) if install and server else None


@contextmanager
def launched(binaries: Binaries) -> Generator[str]:
    """A throwaway server, quick because it need not survive a power cut."""
    with sandbox() as box:
        prepare(binaries, box)
        with serving(binaries, box, free_port(), "--innodb-flush-log-at-trx-commit=0") as dsn:
            yield dsn


def prepare(binaries: Binaries, box: Sandbox) -> None:
    """Make the files of a server in a sandbox."""
    box.run(binaries.install, *_place(box), "--auth-root-authentication-method=normal", "--skip-test-db")


@contextmanager
def serving(
    binaries: Binaries, box: Sandbox, port: int, *options: str, stop: signal.Signals = signal.SIGTERM
) -> Generator[str]:
    """A server on the files in a sandbox, as an earlier one has left them."""
    dsn = f"mysql://root@127.0.0.1:{port}/mysql"
    always = (
        f"--socket={box.folder / 'socket'}",
        "--bind-address=127.0.0.1",
        f"--port={port}",
        "--skip-log-bin",
        "--max-connections=300",
    )
    with box.serve(binaries.server, *_place(box), *always, *options, answers=lambda: connect(dsn).close(), stop=stop):
        yield dsn


def _place(box: Sandbox) -> tuple[str, str]:
    return "--no-defaults", f"--datadir={box.folder / 'data'}"


@contextmanager
def fresh_database(server: str) -> Generator[str]:
    """A new database on a server; those still connected to it at the end are cut off."""
    name = f"fastqueue_test_{uuid4().hex[:16]}"
    with connect(server) as admin, admin.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")
    try:
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
    finally:
        with connect(server) as admin, admin.cursor() as cursor:
            cursor.execute("SELECT id FROM information_schema.processlist WHERE db = %s", (name,))
            # A transaction left open holds its tables, and the drop would wait for it.
            for (connection,) in cursor.fetchall():
                cursor.execute(f"KILL {connection}")
            cursor.execute(f"DROP DATABASE `{name}`")


def connect(dsn: str) -> Connection[Cursor]:
    """A connection by PyMySQL, which reads no DSNs itself."""
    parts = urlsplit(dsn)
    return pymysql.connect(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 3306,
        user=unquote(parts.username or "root"),
        password=unquote(parts.password or ""),
        database=parts.path.lstrip("/") or None,
        autocommit=True,
        connect_timeout=5,
    )

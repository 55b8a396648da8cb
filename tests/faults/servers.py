"""Servers that keep what they acknowledge, end as if the machine lost its power, and are started again."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TypeAlias

from tests.servers import fixtures, mysql, postgres, redis
from tests.servers.throwaway import Sandbox, free_port, sandbox

__all__ = ["Server", "server_of"]

CONNECTIONS = 60
"""Enough for a site, and soon used up."""

Serve: TypeAlias = Callable[[], AbstractContextManager[str]]


class Server:
    """A server of a test's own.

    Attributes:
        url: Its database.
    """

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._running = ExitStack()
        self.url = self._running.enter_context(serve())

    def end(self) -> None:
        """End it at once, whatever it is at."""
        self._running.close()

    def start(self) -> None:
        """Start it on what it has kept; it answers when this returns."""
        self._running.enter_context(self._serve())


@contextmanager
def server_of(store: str) -> Generator[Server]:
    """A server for a store; without its programs the test is skipped, or fails where they are required.

    It has `CONNECTIONS` to give.
    """
    with sandbox() as box:
        server = Server(_MADE[store](box))
        try:
            yield server
        finally:
            server.end()


def _postgres(box: Sandbox) -> Serve:
    binaries = postgres.system_binaries() or postgres.wheel_binaries(16)
    if binaries is None:
        fixtures.unavailable("postgres", "install PostgreSQL")
    programs, port = postgres.prepared(binaries, box), free_port()
    few = ("-c", f"max_connections={CONNECTIONS}")
    return lambda: postgres.serving(programs, box, port, *few, stop=signal.SIGQUIT)


def _mysql(box: Sandbox) -> Serve:
    binaries = mysql.system_binaries()
    if binaries is None:
        fixtures.unavailable("mysql", "install MariaDB")
    mysql.prepare(binaries, box)
    port = free_port()
    few = f"--max-connections={CONNECTIONS}"
    return lambda: mysql.serving(binaries, box, port, few, stop=signal.SIGKILL)


def _redis(box: Sandbox) -> Serve:
    binary, port = redis.system_binaries(), free_port()
    if binary is None:
        fixtures.unavailable("redis", "install Redis")
    keeps = ("--appendonly", "yes", "--appendfsync", "always", "--maxclients", str(CONNECTIONS))
    return lambda: redis.serving(binary, box, port, *keeps, stop=signal.SIGKILL)


_MADE: dict[str, Callable[[Sandbox], Serve]] = {"postgres": _postgres, "mysql": _mysql, "redis": _redis}

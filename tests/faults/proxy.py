"""A line to a server that can be cut, made slow, and made silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Literal
from urllib.parse import urlsplit

__all__ = ["Proxy", "proxied"]


class Proxy:
    """What stands between the processes and their server.

    Attributes:
        url: The server's URL, by way of here.
        delay: How long each packet takes, each way, in seconds.
    """

    def __init__(self, server: str) -> None:
        parts = urlsplit(server)
        self.url = server
        self.delay = 0.0
        self._server = parts.hostname or "127.0.0.1", parts.port or 0
        self._parts = parts
        self._open: set[asyncio.StreamWriter] = set()
        self._up = True
        self._hushed: str | None = None
        self._may_pass = asyncio.Event()
        self._may_pass.set()

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[Proxy]:
        """Take connections for as long as the block."""
        self._tasks: set[asyncio.Task[None]] = set()
        async with await asyncio.start_server(self._taken, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            user = f"{self._parts.username}@" if self._parts.username else ""
            self.url = self._parts._replace(netloc=f"{user}127.0.0.1:{port}").geturl()
            try:
                yield self
            finally:
                self.cut()
                await asyncio.gather(*self._tasks)

    def cut(self) -> None:
        """Reset every connection, and take none."""
        self._up = False
        for writer in self._open:
            writer.transport.abort()

    def join(self) -> None:
        """Take connections again, and pass on what is said."""
        self._up, self._hushed = True, None

    def hush(self, direction: Literal["there", "back", "both"]) -> None:
        """Swallow what is said in a direction; the connections stay open."""
        self._hushed = direction

    async def _taken(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if not self._up:
            writer.transport.abort()
            return
        self._open.add(writer)
        try:
            there, theirs = await asyncio.open_connection(*self._server)
            self._open.add(theirs)
            try:
                await asyncio.gather(self._pass(reader, theirs, "there"), self._pass(there, writer, "back"))
            finally:
                theirs.transport.abort()
                self._open.discard(theirs)
        except OSError:
            return
        finally:
            writer.transport.abort()
            self._open.discard(writer)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: str) -> None:
        with suppress(OSError):
            while said := await reader.read(65536):
                if self.delay:
                    await asyncio.sleep(self.delay)
                if self._hushed not in (direction, "both"):
                    writer.write(said)
                    await writer.drain()
        writer.transport.abort()


@asynccontextmanager
async def proxied(server: str) -> AsyncGenerator[Proxy]:
    """A line to a server."""
    async with Proxy(server).listening() as proxy:
        yield proxy

"""The way from a store's parts to the server: connections of the running event loop, and the scripts that run there."""

from __future__ import annotations

import asyncio
from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from fastqueue.errors import MissingDriver, OptionError, StoreUnavailable
from fastqueue.stores.redis._address import Address
from fastqueue.stores.redis._rows import Argument

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from redis.asyncio.connection import BlockingConnectionPool

__all__ = ["Access", "Script", "driver", "script"]

CONNECTS_WITHIN = 10.0
ANSWERS_WITHIN = 30.0
"""Seconds: for a connection to be made, and for an answer."""


class Script(NamedTuple):
    """A script, and the name by which the server knows it."""

    text: str
    sha: str


@cache
def script(name: str) -> Script:
    """A script of the folder `lua`, behind what all of them are built on."""
    folder = files("fastqueue.stores") / "lua"
    first, _, rest = (folder / f"{name}.lua").read_text(encoding="utf-8").partition("\n")
    text = f"{first}\n{(folder / '_jobs.lua').read_text(encoding='utf-8')}\n{rest}"
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


def driver() -> Any:
    """The redis package's asyncio module.

    Raises:
        MissingDriver: it is not installed.
    """
    try:
        import redis.asyncio
    except ImportError as error:
        raise MissingDriver('the Redis store needs redis: pip install "fastqueue[redis]"', name="redis") from error
    return redis.asyncio


class Access:
    """A store's connections and scripts.

    A call that its caller no longer waits for is not cut off: it may have happened, so it is let come to its end.

    Args:
        address: The server and the keys.
        size: The most connections at a time.

    Attributes:
        root: What all keys begin with.
        channel: What notices are sent on.
        ready: Whether the server was found to be in order.
    """

    def __init__(self, address: Address, *, size: int) -> None:
        self.address = address
        self.root = f"{{{address.prefix}}}:"  # the braces keep all keys on one server of a cluster
        self._size = size
        self._pool: BlockingConnectionPool | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: set[asyncio.Task[Any]] = set()
        self.ready = False
        try:
            pool: Any = self._make_pool()
            connection = pool.make_connection()
        except (TypeError, ValueError):
            # Without the driver's words: they may show a part of the password.
            raise OptionError("url cannot be read: look at its port, and at the options that follow its '?'") from None
        # Channels are the same in all of a server's numbered databases.
        self.channel = f"{self.root}{connection.db}:wake"

    @property
    def is_open(self) -> bool:
        """Whether the server was found to be in order on the running event loop."""
        return self.ready and self._is_here

    def connect(self) -> None:
        """Have connections on the running event loop, made when they are needed; those of another are forgotten."""
        if not self._is_here:
            self._pool = self._make_pool()
            self._loop, self._running, self.ready = asyncio.get_running_loop(), set(), False

    async def close(self) -> None:
        """Close the connections, if the running event loop has any, once the calls under way have their answers."""
        here, pool, self._pool, self.ready = self._is_here, self._pool, None, False
        if here and pool is not None:
            while self._running:
                await asyncio.wait(set(self._running))
            await pool.aclose()

    async def run(self, name: str, *arguments: Argument) -> Any:
        """Run a script, which happens wholly or, when this raises, not at all.

        Raises:
            StoreUnavailable: the server could not be reached, refused, or was lost before its answer came; only in
                that last case may it have happened.
        """
        text, sha = script(name)
        keys = (1, self.root, *arguments)
        return await self._do(("EVALSHA", sha, *keys), ("EVAL", text, *keys))

    async def call(self, *command: Argument) -> Any:
        """Run one command of the server's."""
        return await self._do(command)

    def listener(self) -> Redis:
        """A client of its own, for whoever listens."""
        client: Redis = driver().Redis.from_url(self.address.url, **self._options())
        return client

    def unavailable(self, error: Exception) -> StoreUnavailable:
        """The error that this one of the driver's is to a caller."""
        return StoreUnavailable(f"Redis at {self.address.shown} is not available: {error}")

    @property
    def _is_here(self) -> bool:
        return self._pool is not None and self._loop is asyncio.get_running_loop()

    def _make_pool(self) -> BlockingConnectionPool:
        pools: type[BlockingConnectionPool] = driver().BlockingConnectionPool
        return pools.from_url(self.address.url, max_connections=self._size, timeout=None, **self._options())

    def _options(self) -> dict[str, Any]:
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        return {
            "client_name": "fastqueue",
            "decode_responses": True,
            "protocol": 2,
            # The driver would send a push again whose answer was lost, and so keep it twice.
            "retry": Retry(NoBackoff(), 0),
            "socket_connect_timeout": CONNECTS_WITHIN,
            "socket_timeout": ANSWERS_WITHIN,
            **({} if self.address.url.startswith("unix:") else {"socket_keepalive": True}),
        }

    async def _do(self, *commands: tuple[Argument, ...]) -> Any:
        if not self._is_here or self._pool is None:
            raise StoreUnavailable(f"the Redis store on {self.address.shown} is not open; await its open() first")
        task = asyncio.create_task(self._answer(self._pool, commands), name="fastqueue-redis")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(_hear_out)
        return await asyncio.shield(task)

    async def _answer(self, pool: Any, commands: tuple[tuple[Argument, ...], ...]) -> Any:
        """The answer to the first command whose script the server has; the last one brings it along."""
        from redis.exceptions import DataError, NoScriptError, RedisError

        try:
            connection = await pool.get_connection()
            try:
                for command in commands:
                    await _send(connection, command)
                    try:
                        return await connection.read_response()
                    except NoScriptError:
                        if command is commands[-1]:
                            raise
            finally:
                await pool.release(connection)
        except DataError:
            raise
        except (RedisError, OSError) as error:
            raise self.unavailable(error) from error


async def _send(connection: Any, command: tuple[Argument, ...]) -> None:
    """Send a command; the driver alone would write it in Python, which costs as much as the rest of a push."""
    try:
        from hiredis import pack_command
    except ImportError:
        await connection.send_command(*command)
    else:
        await connection.send_packed_command(pack_command(command))  # type: ignore[arg-type]


def _hear_out(task: asyncio.Task[Any]) -> None:
    """A call that nobody waits for any more may fail without a word."""
    if not task.cancelled():
        task.exception()

"""The connections of one store on one event loop: few, each used by one task at a time, and none kept in doubt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastqueue.errors import MissingDriver, StoreUnavailable
from fastqueue.stores._sql import Call, Got
from fastqueue.stores.joins import ended_within
from fastqueue.stores.postgres._address import Address

if TYPE_CHECKING:
    from asyncpg import Connection

__all__ = ["SETTINGS", "Connections", "Pool", "driver", "executor"]

CONNECTS_WITHIN = 10.0
CLOSES_WITHIN = 5.0
ANSWERS_WITHIN = 60.0
"""Seconds: for a connection to be made, to be closed, and for a claim or a settlement."""

IDLE_FOR = 60.0
"""Seconds after which a connection that others have not needed is closed; one of each pool stays."""

SETTINGS = {
    "jit": "off",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "plan_cache_mode": "force_generic_plan",
}
"""What every connection sets that can: the statements are short, and their plans must not hang on how many rows there
were when they were made."""

_OUTAGES = ("08", "40", "53", "55", "57", "58")
"""The classes of SQLSTATE that say: not now. Lost, deadlocked, out of resources, locked, shutting down, disk."""


def driver() -> Any:
    """The asyncpg module.

    Raises:
        MissingDriver: it is not installed.
    """
    try:
        import asyncpg
    except ImportError as error:
        raise MissingDriver(
            'the PostgreSQL store needs asyncpg: pip install "fastqueue[postgres]"', name="asyncpg"
        ) from error
    return asyncpg


class Pool:
    """Up to `size` connections, made when they are needed, the last one used first.

    A connection on which anything but a statement's own error happened is closed and not used again: its caller may
    have been cancelled while an answer was on its way.

    Args:
        address: Where to connect.
        size: The most connections at a time.
        options: Further arguments of the driver's `connect`.
    """

    def __init__(self, address: Address, size: int, options: Mapping[str, Any]) -> None:
        self.address = address
        self._options = options
        self._room = asyncio.Semaphore(size)
        self._idle: list[tuple[Connection, float]] = []
        self._closings: set[asyncio.Task[None]] = set()
        self._closed = False

    async def run(self, call: Call) -> Got:
        """Run one statement, in a transaction of its own."""
        async with self.borrow() as connection:
            return await executor(connection)(call)

    @asynccontextmanager
    async def borrow(self) -> AsyncGenerator[Connection]:
        """A connection for the length of a block.

        Raises:
            StoreUnavailable: the server could not be reached, or failed; also when the block lets its error through.
        """
        await self._room.acquire()
        try:
            connection = self._take() or await self._connect()
        except BaseException:
            self._room.release()
            raise
        try:
            yield connection
        except BaseException as error:
            outage = _is_outage(error)
            closing = self._give(connection, whole=isinstance(error, driver().PostgresError) and not outage)
            if closing is not None and isinstance(error, asyncio.CancelledError):
                # The server is being told; whoever cancelled may look at once at what became of the statement.
                await asyncio.wait({closing})
            if outage:
                raise self._unavailable(error) from error
            raise
        self._give(connection, whole=True)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Connection]:
        """A transaction for the app to fill; what is raised once it has begun comes as it is."""
        failure: Exception | None = None
        async with self.borrow() as connection:
            within = connection.transaction()
            await within.start()
            try:
                yield connection
                await _refuse_ended(connection)
                await within.commit()
            except Exception as error:
                failure = error
            try:
                async with asyncio.timeout(CLOSES_WITHIN):
                    if failure is not None:
                        await within.rollback()
                    await connection.reset()  # what the app has set on it
            except (OSError, driver().PostgresError, driver().InterfaceError, driver().InternalClientError):
                connection.terminate()
        if failure is not None:
            raise failure

    async def close(self) -> None:
        """Close every connection; those lent out when they come back."""
        self._closed = True
        for connection, _ in self._idle:
            await _close(connection)
        self._idle.clear()
        while self._closings:
            await asyncio.wait(self._closings)

    def _take(self) -> Connection | None:
        while self._idle:
            connection, _ = self._idle.pop()
            if not connection.is_closed():
                return connection
        return None

    async def _connect(self) -> Connection:
        try:
            return await driver().connect(self.address.dsn, timeout=CONNECTS_WITHIN, **self._options)
        except Exception as error:
            if isinstance(error, driver().PostgresError) or _is_outage(error):
                raise self._unavailable(error) from error
            raise

    def _give(self, connection: Connection, *, whole: bool) -> asyncio.Task[None] | None:
        """Take a connection back; the task that closes it, if it is not kept."""
        if connection.is_closed():
            self._room.release()
            return None
        if self._closed or not whole or connection.is_in_transaction():
            return self._drop(connection, then=self._room.release)
        now = asyncio.get_running_loop().time()
        self._idle.append((connection, now))
        self._room.release()
        if len(self._idle) > 1 and self._idle[0][1] < now - IDLE_FOR:
            self._drop(self._idle.pop(0)[0])
        return None

    def _drop(self, connection: Connection, *, then: Callable[[], None] = lambda: None) -> asyncio.Task[None]:
        """Close a connection in a task of its own, since its user may be in no state to wait."""

        def closed(task: asyncio.Task[None]) -> None:
            self._closings.discard(task)
            then()

        task = asyncio.get_running_loop().create_task(_close(connection), name="fastqueue-postgres-close")
        self._closings.add(task)
        task.add_done_callback(closed)
        return task

    def _unavailable(self, error: BaseException) -> StoreUnavailable:
        text = str(error) or type(error).__name__
        hint = "; behind a pooler, give the store pooled=True" if "startup parameter" in text else ""
        return StoreUnavailable(f"PostgreSQL at {self.address.shown} is not available: {text}{hint}")


class Connections:
    """The pools of one store on one event loop; none waits for another.

    Attributes:
        claims: One connection, for claims.
        ends: One, for all that says how runs went: settling, giving back, renewing.
        others: A few, for pushes and everything else.
        lent: As many, without settings of ours, for transactions of the app's.
        notices: One, for notices that are sent on their own.
        ears: One, which listens; None behind a pooler without an address of its own for it.
    """

    def __init__(self, address: Address, *, size: int, pooled: bool, listen: Address | None) -> None:
        self.loop = asyncio.get_running_loop()
        settings = {"application_name": "fastqueue", **({} if pooled else SETTINGS)}
        options: dict[str, Any] = {"server_settings": settings}
        if pooled:
            options["statement_cache_size"] = 0
        quick = options | {"command_timeout": ANSWERS_WITHIN}
        # Each job that ended is looked up once; a plan made for a few would compare each with each.
        hashing = quick if pooled else quick | {"server_settings": settings | {"enable_nestloop": "off"}}
        direct = {"server_settings": {"application_name": "fastqueue listen"}}
        self.claims = Pool(address, 1, quick)
        self.ends = Pool(address, 1, hashing)
        self.others = Pool(address, size, options)
        self.lent = Pool(address, size, options | {"server_settings": {"application_name": "fastqueue transaction"}})
        self.notices = Pool(address, 1, options)
        self.ears = None if listen is None else Pool(listen, 1, direct)

    @property
    def pools(self) -> list[Pool]:
        """All of them."""
        return [self.claims, self.ends, self.others, self.lent, self.notices, *([self.ears] if self.ears else [])]

    async def close(self) -> None:
        """Close every connection."""
        for pool in self.pools:
            await pool.close()


def executor(connection: Connection) -> Callable[[Call], Awaitable[Got]]:
    """What runs calls on a connection."""

    async def execute(call: Call) -> Got:
        text, values = call.statement.bind("numeric", call.values)
        rows = await connection.fetch(text, *values)
        return Got(rows, len(rows))

    return execute


async def _refuse_ended(connection: Connection) -> None:
    if not connection.is_in_transaction():
        raise ended_within()
    try:
        await connection.execute("SELECT 1")
    except driver().InFailedSQLTransactionError as error:
        # The server answers a commit now by a rollback, of which the driver says nothing.
        raise ended_within() from error


async def _close(connection: Connection) -> None:
    try:
        async with asyncio.timeout(CLOSES_WITHIN):
            await connection.close()
    except (OSError, driver().PostgresError, driver().InterfaceError):
        connection.terminate()


def _is_outage(error: BaseException) -> bool:
    state = getattr(error, "sqlstate", None)
    if isinstance(state, str):
        # 25006: the server has become a standby; the next connection may find the new primary.
        return state.startswith(_OUTAGES) or state == "25006"
    # An InterfaceError that is a ValueError is about a value that cannot be sent. The driver calls it internal when a
    # connection that waits for a statement has just been told that it is cut off.
    lost = isinstance(error, (driver().InterfaceError, driver().InternalClientError))
    return isinstance(error, OSError) or (lost and not isinstance(error, ValueError))

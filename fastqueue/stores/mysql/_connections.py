"""The connections of one store on one event loop: few, each used by one task at a time, and none kept in doubt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from fastqueue.errors import MissingDriver, StoreUnavailable
from fastqueue.stores._sql import Call, Got, Statement
from fastqueue.stores.joins import ended_within
from fastqueue.stores.mysql._address import Address, refuse_old

if TYPE_CHECKING:
    from asyncmy.connection import Connection

__all__ = ["Connections", "Execute", "Pool", "contended", "driver", "duplicate"]

Execute: TypeAlias = Callable[[Call], Awaitable[Got]]
"""Runs a statement on a connection."""

CONNECTS_WITHIN = 10.0
CLOSES_WITHIN = 5.0
ENDS_WITHIN = 5.0
"""Seconds for a connection to be made, to be closed, and to be ended by the server."""

GATES_WITHIN = 1
LOCKS_WITHIN = 5
"""Seconds that the server lets a statement wait for a lock; the first is for claims, which can do without."""

PROBED_AFTER = 5.0
"""Seconds unused after which a connection is asked whether it is still there, before it is used."""

FROZEN_AFTER = 30
IDLE_FOR = 300
"""Seconds unused after which the server ends a connection. The first is for those of claims and settlements: a process
that is frozen holds its locks no longer. It must be more than `PROBED_AFTER`."""

_BEGIN = Call(Statement("begin", "START TRANSACTION"), {})
_COMMIT = Call(Statement("commit", "COMMIT"), {})
_CONNECTIONS = Call(Statement("connections", "SHOW PROCESSLIST"), {})
_NOTHING = Call(Statement("nothing", "DO 0"), {})
_PAUSE = Call(Statement("pause", "DO SLEEP(0.001)"), {})
_READ_COMMITTED = Call(Statement("level", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"), {})

_DEADLOCK, _LOCK_WAIT, _DUPLICATE = 1213, 1205, 1062

_OUTAGES = {
    *(1021, 1037, 1038, 1041, 1114),  # out of disk, memory, room in the table
    *(1040, 1203, 1226),  # too many connections, or too much asked of an account
    *(1053, 1077, 1079, 1080, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 3169, 4031),  # shutting down, killed, cut off
    *(1290, 1792, 1836),  # read only: the next connection may find the new primary
    *(_LOCK_WAIT, _DEADLOCK, 1317, 1969, 3024),  # locked, or interrupted
    *(2002, 2003, 2005, 2006, 2013, 2014, 2055),  # the driver's own: not reached, or lost
}
"""The numbers of errors that say: not now."""


def driver() -> Any:
    """The asyncmy module.

    Raises:
        MissingDriver: it is not installed.
    """
    try:
        import asyncmy
    except ImportError as error:
        raise MissingDriver('the MySQL store needs asyncmy: pip install "fastqueue[mysql]"', name="asyncmy") from error
    return asyncmy


def contended(error: StoreUnavailable) -> bool:
    """Whether the server chose this one of several that were in each other's way; what it did is undone."""
    return _number(error.__cause__) in (_DEADLOCK, _LOCK_WAIT)


def kept_waiting(error: StoreUnavailable) -> bool:
    """Whether it was for a lock that did not come in time."""
    return _number(error.__cause__) == _LOCK_WAIT


def duplicate(error: BaseException) -> bool:
    """Whether a row has the key already that was to be inserted."""
    return _number(error) == _DUPLICATE


class Pool:
    """Up to `size` connections, made when they are needed, the last one used first.

    A connection on which anything went wrong is closed and not used again: its caller may have been cancelled while
    an answer was on its way, and the next would read that one. Of a cancelled caller's the server is told besides; it
    would else go on with the statement, and wait for its locks.

    Args:
        address: Where to connect.
        size: The most connections at a time.
        autocommit: Whether a statement outside a transaction is one by itself; if not, each statement begins one.
        idle_for: Seconds unused after which the server ends a connection. None: nothing is set on the connections,
            which are the app's for the length of a transaction.
        locks_within: Seconds that the server lets a statement wait for a lock.
    """

    def __init__(
        self,
        address: Address,
        size: int,
        *,
        autocommit: bool,
        idle_for: int | None,
        locks_within: int = LOCKS_WITHIN,
    ) -> None:
        self.address = address
        self._autocommit = autocommit
        self._idle_for = idle_for
        self._locks_within = locks_within
        self._room = asyncio.Semaphore(size)
        self._idle: list[tuple[Connection, float]] = []
        self._endings: set[asyncio.Task[None]] = set()
        self._closed = False

    @asynccontextmanager
    async def statements(self) -> AsyncGenerator[Execute]:
        """A connection for the length of a block; where the pool has autocommit, each statement is on its own.

        Raises:
            StoreUnavailable: the server could not be reached, or failed; also when the block lets its error through.
        """
        async with self._room:
            connection = await self._ready()
            try:
                yield _executor(connection)
            except BaseException as error:
                connection.close()
                if isinstance(error, asyncio.CancelledError):
                    # Whoever cancelled may look at once at what became of the statement.
                    await asyncio.shield(self._ending(connection))
                if _is_outage(error):
                    raise self._unavailable(error) from error
                raise
            self._give(connection)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Execute]:
        """A transaction for the length of a block: committed at its end, and undone when the block fails.

        Raises:
            StoreUnavailable: as for `statements`.
        """
        async with self.statements() as execute:
            if self._autocommit:
                await execute(_BEGIN)
            yield execute
            await execute(_COMMIT)

    @asynccontextmanager
    async def lent_transaction(self) -> AsyncGenerator[Connection]:
        """A transaction for the app to fill; what is raised once it has begun comes as it is."""
        async with self._room:
            connection, whole = await self._ready(), False
            try:
                await self._begin(connection)
                try:
                    yield connection
                    await _refuse_ended(connection)
                    await connection.commit()
                except Exception:
                    with suppress(OSError, driver().errors.Error):
                        async with asyncio.timeout(CLOSES_WITHIN):
                            await connection.rollback()
                        whole = True
                    raise
                whole = True
            finally:
                if whole:
                    self._give(connection)
                else:
                    connection.close()
                    # Whoever was cancelled may look at once at what became of the transaction.
                    await asyncio.shield(self._ending(connection))

    async def close(self) -> None:
        """Close every connection; those lent out when they come back."""
        self._closed = True
        while self._idle:
            connection, _ = self._idle.pop()
            with suppress(OSError, driver().errors.Error):
                async with asyncio.timeout(CLOSES_WITHIN):
                    await connection.ensure_closed()
            connection.close()
        if self._endings:
            await asyncio.wait(self._endings)

    def abandon(self) -> None:
        """Drop every connection without a word: their event loop is gone."""
        for connection, _ in self._idle:
            with suppress(RuntimeError):
                connection.close()
        self._idle.clear()

    async def _ready(self) -> Connection:
        while self._idle:
            connection, since = self._idle.pop()
            if not _is_cut_off(connection) and await self._answers(connection, since):
                return connection
            connection.close()
        return await self._connect()

    async def _answers(self, connection: Connection, since: float) -> bool:
        """Whether a connection is still there; one used just now is taken to be."""
        if asyncio.get_running_loop().time() < since + PROBED_AFTER:
            return True
        try:
            await connection.ping(reconnect=False)
        except (OSError, driver().errors.Error):
            return False
        except BaseException:
            connection.close()
            raise
        return True

    async def _connect(self) -> Connection:
        try:
            async with asyncio.timeout(CONNECTS_WITHIN):
                connection: Connection = await driver().connect(
                    **self.address.arguments,
                    charset="utf8mb4",
                    autocommit=self._autocommit,
                    program_name="fastqueue",
                )
                await self._set_up(connection)
        except (OSError, driver().errors.Error) as error:
            raise self._unavailable(error) from error
        return connection

    async def _set_up(self, connection: Connection) -> None:
        try:
            refuse_old(connection.get_server_info())
            if self._idle_for is None:
                return
            execute = _executor(connection)
            await execute(_READ_COMMITTED)
            settings = (
                "SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES', sql_notes = 0, "
                f"innodb_lock_wait_timeout = {self._locks_within}, wait_timeout = {self._idle_for}"
            )
            await execute(Call(Statement("settings", settings), {}))
        except BaseException:
            connection.close()
            raise

    async def _begin(self, connection: Connection) -> None:
        try:
            await connection.begin()
        except (OSError, driver().errors.Error) as error:
            raise self._unavailable(error) from error

    def _ending(self, connection: Connection) -> asyncio.Task[None]:
        """See to it, in a task of its own, that the server ends a connection that was closed within a statement."""
        task = asyncio.create_task(self._end(connection.thread_id()), name="fastqueue-mysql-end")
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)
        return task

    async def _end(self, id: int) -> None:
        with suppress(StoreUnavailable, OSError, driver().errors.Error):
            async with asyncio.timeout(ENDS_WITHIN):
                connection = await self._connect()
                try:
                    execute = _executor(connection)
                    await execute(Call(Statement("kill", f"KILL CONNECTION {id}"), {}))
                    while any(row[0] == id for row in (await execute(_CONNECTIONS)).rows):
                        await execute(_PAUSE)
                finally:
                    connection.close()

    def _give(self, connection: Connection) -> None:
        if self._closed:
            connection.close()
        else:
            self._idle.append((connection, asyncio.get_running_loop().time()))

    def _unavailable(self, error: BaseException) -> StoreUnavailable:
        text = str(error) or type(error).__name__
        return StoreUnavailable(f"MySQL at {self.address.shown} is not available: {text}")


class Connections:
    """The pools of one store on one event loop; none waits for another.

    Attributes:
        claims: One connection, for claims.
        ends: One, for all that says how runs went: settling, giving back, renewing.
        looks: One, for what must be seen or kept while a transaction of the app's is open.
        others: A few, for pushes and everything else.
        lent: As many, for transactions of the app's.
    """

    def __init__(self, address: Address, *, size: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.claims = Pool(address, 1, autocommit=False, idle_for=FROZEN_AFTER, locks_within=GATES_WITHIN)
        self.ends = Pool(address, 1, autocommit=False, idle_for=FROZEN_AFTER)
        self.looks = Pool(address, 1, autocommit=True, idle_for=IDLE_FOR)
        self.others = Pool(address, size, autocommit=True, idle_for=IDLE_FOR)
        self.lent = Pool(address, size, autocommit=True, idle_for=None)

    @property
    def pools(self) -> list[Pool]:
        """All of them."""
        return [self.claims, self.ends, self.looks, self.others, self.lent]

    async def close(self) -> None:
        """Close every connection."""
        for pool in self.pools:
            await pool.close()

    def abandon(self) -> None:
        """Drop every connection without a word."""
        for pool in self.pools:
            pool.abandon()


async def _refuse_ended(connection: Connection) -> None:
    # A statement of ours, since what failed has not told whether the transaction went with it.
    await _executor(connection)(_NOTHING)
    if not connection.get_transaction_status():
        raise ended_within()


def _executor(connection: Connection) -> Execute:
    async def execute(call: Call) -> Got:
        text, values = call.statement.bind("format", call.values)
        async with connection.cursor() as cursor:
            await cursor.execute(text, values)
            return Got(await cursor.fetchall(), cast(int, cursor.rowcount), cursor.lastrowid)

    return execute


def _is_cut_off(connection: Connection) -> bool:
    """Whether the driver has seen the server close the connection; it tells so by no public name."""
    return bool(getattr(connection, "_stream_broken", False))


def _is_outage(error: BaseException) -> bool:
    # The driver's own: it has no connection any more, or cannot make out what it reads.
    lost = isinstance(error, driver().InterfaceError | driver().InternalError | OSError)
    return lost or _number(error) in _OUTAGES


def _number(error: BaseException | None) -> int:
    """MySQL's number for an error; -1: it is not MySQL's."""
    number: object = error.args[0] if error is not None and error.args else None
    return number if isinstance(number, int) and isinstance(error, driver().MySQLError) else -1

"""The MySQL and MariaDB store: jobs in the app's own database, for any number of processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import ClassVar

from fastqueue.errors import OptionError
from fastqueue.job import Claimed, Moment, NewJob, Pushed
from fastqueue.outcome import Settlement
from fastqueue.store import Claim
from fastqueue.stores._sql import Call, Got, Steps, Tables
from fastqueue.stores._sql_faculties import SQLTime
from fastqueue.stores._sql_store import SQLStore
from fastqueue.stores.joins import SQLJoins
from fastqueue.stores.mysql._access import Access
from fastqueue.stores.mysql._address import Address
from fastqueue.stores.mysql._claim import claim
from fastqueue.stores.mysql._connections import driver
from fastqueue.stores.mysql._faculties import MySQLFailedJobs, MySQLHolds, MySQLSchedules, MySQLThrottles
from fastqueue.stores.mysql._home import MySQLHome
from fastqueue.stores.mysql._inspects import MySQLInspects
from fastqueue.stores.mysql._lanes import Lanes
from fastqueue.stores.mysql._migrates import MySQLMigrates
from fastqueue.stores.mysql._moves import MySQLMoves
from fastqueue.stores.mysql._names import refuse_long_names
from fastqueue.stores.mysql._push import needs_transaction, push_steps
from fastqueue.stores.mysql._settle import give_back_steps, renew_steps, settle_steps

__all__ = ["MySQLStore"]


class MySQLStore(SQLStore[Access]):
    """Keeps jobs in a MySQL or MariaDB database, the app's own or one for itself, through asyncmy.

    One store object has at most `pool_size` + 3 connections: one for claims, one for telling how runs ended, one for
    pushes inside transactions of the app's, and a few for pushes and everything else. They are made when they are
    needed, so that an app that only pushes has one or two; `queue.transaction()` has up to `pool_size` more. The store
    cannot be told of pushes by other processes: they are found when it next looks.

    It is made for MySQL 8.0.19 or newer and MariaDB 10.6 or newer, with row-based or mixed binary logs. It has been
    run on MariaDB 10.11; what it says to the server is what MySQL's manual allows too.

    Args:
        dsn: The database as a URL; a driver in it ("mysql+asyncmy://...") is ignored. After a "?" it takes
            `unix_socket`, and for encryption `ssl`, `ssl_ca`, `ssl_cert` and `ssl_key`.
        prefix: What the names of the tables begin with.
        pool_size: How many connections pushes and everything else may use, and as many `queue.transaction()`.
        migrate: Whether opening makes and upgrades the tables; False: it refuses tables that are not up to date.

    Raises:
        OptionError: an address that is none, names that cannot be, or no connection to work with.
        MissingDriver: asyncmy is not installed.

    Example:
        >>> MySQLStore("mysql+asyncmy://app:secret@db/app", prefix="jobs_")
        MySQLStore('mysql://app@db/app')
    """

    name: ClassVar[str] = "mysql"

    def __init__(self, dsn: str, *, prefix: str = "fastqueue_", pool_size: int = 4, migrate: bool = True) -> None:
        if pool_size < 1:
            raise OptionError(f"pool_size is {pool_size!r}; pushes need at least 1 connection")
        driver()
        access = Access(Address.read(dsn), tables=Tables(prefix, quote="`"), size=pool_size)
        super().__init__(access)
        self._lanes = Lanes(access)
        self._migrate = migrate
        self.schedules = MySQLSchedules(access, self._lanes)
        self.holds = MySQLHolds(access)
        self.failed = MySQLFailedJobs(access)
        self.throttles = MySQLThrottles(access)
        self.time = SQLTime(access)
        self.moves = MySQLMoves(access, self._lanes)
        self.joins = SQLJoins(MySQLHome(access, self.push_steps, self.beside))
        self.migrates = self._tables = MySQLMigrates(access)
        self.inspects = MySQLInspects(access, size=pool_size)

    def __repr__(self) -> str:
        return f"MySQLStore({self._access.address.shown!r})"

    async def open(self) -> None:
        self._access.here  # noqa: B018  another event loop's connections are forgotten
        if self._access.identity is not None:
            return
        self._lanes.forget()
        try:
            await (self._tables.migrate() if self._migrate else self._tables.check())
            await self.identity()
        except BaseException:
            await self._access.close()
            raise

    async def push(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        if not jobs:
            return []
        refuse_long_names(jobs)
        await self._lanes.ready(jobs)
        run = self._access.together if needs_transaction(jobs) else self._access.each
        return await run(self._access.here.others, lambda: push_steps(self.statements, jobs, now))

    def push_steps(self, jobs: Sequence[NewJob], now: Moment) -> Steps[list[Pushed]]:
        """The statements of a push, fit for running inside a transaction of the app's on the same tables.

        A call that is `fresh` must be asked beside that transaction instead, by the steps of `beside`.
        """
        refuse_long_names(jobs)
        yield from self._lanes.steps(jobs)
        return (yield from push_steps(self.statements, jobs, now, joined=True))

    def beside(self, call: Call) -> Steps[Got]:
        """How to ask a `fresh` call: on a connection of the store's own, in autocommit."""
        if call.statement.name == "push.unended":
            yield Call(self.statements["push.uncommitted"], {})
        return (yield call)

    async def claim(
        self,
        now: Moment,
        *,
        token: int,
        limit: int,
        queues: Sequence[str] | None,
        kinds: Collection[str],
    ) -> Claim:
        if limit < 1 or not kinds or (queues is not None and not queues):
            return Claim([])
        return await claim(self._access, now, token=token, limit=limit, queues=queues, kinds=kinds)

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        if not settlements:
            return []
        return await self._end(lambda: settle_steps(self.statements, settlements))

    async def give_back(self, jobs: Sequence[Claimed]) -> list[bool]:
        return await self._end(lambda: give_back_steps(self.statements, jobs)) if jobs else []

    async def renew(self, jobs: Sequence[Claimed], *, now: Moment, until: Moment) -> list[bool]:
        return await self._end(lambda: renew_steps(self.statements, jobs, now=now, until=until)) if jobs else []

    async def _end(self, steps: Callable[[], Steps[list[bool]]]) -> list[bool]:
        return await self._access.together(self._access.here.ends, steps)

    async def prune(self, now: Moment, *, failed_before: Moment) -> int:
        await self._forget("prune.over", "prune.kinds", "kinds", now=now)
        await self._forget("prune.windows", "prune.throttles", "names", now=now)
        return await self._forget("prune.old", "prune.failed", "ids", before=failed_before)

    async def _forget(self, find: str, forget: str, what: str, **values: Moment) -> int:
        """Find and forget in portions, each a transaction, so that no lock is held for long."""

        def portion() -> Steps[int]:
            got = yield Call(self.statements[find], {**values, "portion": self.portion})
            found = sorted(row[0] for row in got.rows)
            if found:
                yield Call(self.statements[forget], {what: found, "gone": json.dumps(found)})
            return len(found)

        gone = 0
        while number := await self._access.change(portion):
            gone += number
        return gone

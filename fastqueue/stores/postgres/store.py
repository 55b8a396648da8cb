"""The PostgreSQL store: jobs in the app's own database, for any number of processes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

from fastqueue.errors import OptionError
from fastqueue.job import Claimed, Moment, NewJob, Pushed
from fastqueue.outcome import Settlement
from fastqueue.store import Claim
from fastqueue.stores._sql import Steps, Tables, run
from fastqueue.stores._sql_faculties import SQLThrottles, SQLTime
from fastqueue.stores._sql_store import SQLStore
from fastqueue.stores.joins import SQLJoins
from fastqueue.stores.postgres._access import Access
from fastqueue.stores.postgres._address import Address
from fastqueue.stores.postgres._claim import Claimer
from fastqueue.stores.postgres._connections import driver
from fastqueue.stores.postgres._faculties import PostgresFailedJobs, PostgresHolds, PostgresSchedules
from fastqueue.stores.postgres._home import PostgresHome
from fastqueue.stores.postgres._inspects import PostgresInspects
from fastqueue.stores.postgres._migrates import PostgresMigrates
from fastqueue.stores.postgres._moves import PostgresMoves
from fastqueue.stores.postgres._push import push_steps
from fastqueue.stores.postgres._settle import give_back, renew, settle
from fastqueue.stores.postgres._wakes import PostgresWakes

__all__ = ["PostgresStore"]


class PostgresStore(SQLStore[Access]):
    """Keeps jobs in a PostgreSQL database, the app's own or one for itself, through asyncpg.

    One store object has at most `pool_size` + 4 connections: one for claims, one for telling how runs ended, one for
    notices, one that listens, and a few for pushes and everything else. They are made when they are needed, so that
    an app that only pushes has one or two. `queue.transaction()` has up to `pool_size` more.

    Args:
        dsn: The database as a URL; a driver in it ("postgresql+asyncpg://...") is ignored.
        schema: The schema of the tables; it is made when it is not there. None: the first of the search path.
        prefix: What the names of the tables and functions begin with.
        pool_size: How many connections pushes and everything else may use, and as many `queue.transaction()`.
        pooled: Whether `dsn` leads to a pooler in transaction mode (PgBouncer): nothing is then kept on a connection.
        listen_dsn: Where to listen for notices. None: at `dsn`, or nowhere if it leads to a pooler.
        notify: Whether a push tells other processes within its own commit. The server lets commits with notices
            through one by one, so an app with hundreds of pushing connections may do better without.
        migrate: Whether opening makes and upgrades the tables; False: it refuses tables that are not up to date.

    Raises:
        OptionError: an address that is none, names that cannot be, or no connection to work with.
        MissingDriver: asyncpg is not installed.

    Example:
        >>> PostgresStore("postgresql+asyncpg://app:secret@db/app", schema="jobs")
        PostgresStore('postgresql://app@db/app')
    """

    name: ClassVar[str] = "postgres"

    def __init__(
        self,
        dsn: str,
        *,
        schema: str | None = None,
        prefix: str = "fastqueue_",
        pool_size: int = 4,
        pooled: bool = False,
        listen_dsn: str | None = None,
        notify: bool = True,
        migrate: bool = True,
    ) -> None:
        if pool_size < 1:
            raise OptionError(f"pool_size is {pool_size!r}; pushes need at least 1 connection")
        driver()
        address = Address.read("dsn", dsn)
        direct = None if pooled else address
        access = Access(
            address,
            listen=Address.read("listen_dsn", listen_dsn) if listen_dsn else direct,
            tables=Tables(prefix, schema),
            size=pool_size,
            pooled=pooled,
            notify=notify,
        )
        super().__init__(access)
        self._migrate = migrate
        self._claimer = Claimer(access)
        self.schedules = PostgresSchedules(access)
        self.holds = PostgresHolds(access)
        self.failed = PostgresFailedJobs(access)
        self.throttles = SQLThrottles(access)
        self.time = SQLTime(access)
        self.wakes = wakes = PostgresWakes(access)
        self.moves = PostgresMoves(access)
        self.joins = SQLJoins(PostgresHome(access, self.push_steps))
        self.migrates = self._tables = PostgresMigrates(access)
        self.inspects = PostgresInspects(access, wakes, size=pool_size)

    def __repr__(self) -> str:
        return f"PostgresStore({self._access.address.shown!r})"

    async def open(self) -> None:
        if self._access.is_open:
            return
        try:
            await (self._tables.migrate() if self._migrate else self._tables.check())
            await self.identity()
            self._access.ready = True
        except BaseException:
            await self._access.close()
            raise

    def push_steps(self, jobs: Sequence[NewJob], now: Moment) -> Steps[list[Pushed]]:
        """The statements of a push, fit for running inside any transaction on the same tables."""
        return push_steps(self.statements, jobs, now)

    async def push(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        if not jobs:
            return []
        notice = self._access.notice(next((job.queue for job in jobs if job.run_at <= now), None))
        return await run(push_steps(self.statements, jobs, now, notice), self._access.here.others.run)

    async def claim(
        self,
        now: Moment,
        *,
        token: int,
        limit: int,
        queues: Sequence[str] | None,
        kinds: Collection[str],
    ) -> Claim:
        if limit < 1 or not kinds:
            return Claim([])
        return await self._claimer.claim(now, token=token, limit=limit, queues=queues, kinds=kinds)

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        return await settle(self._access, settlements) if settlements else []

    async def give_back(self, jobs: Sequence[Claimed]) -> list[bool]:
        return await give_back(self._access, jobs) if jobs else []

    async def renew(self, jobs: Sequence[Claimed], *, now: Moment, until: Moment) -> list[bool]:
        return await renew(self._access, jobs, now=now, until=until) if jobs else []

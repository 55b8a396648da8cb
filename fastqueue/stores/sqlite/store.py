"""The SQLite store: jobs in a database file, for one process or several on one machine."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import ClassVar

from fastqueue.errors import OptionError
from fastqueue.job import Claimed, Lane, Moment, NewJob, Pushed
from fastqueue.outcome import Settlement
from fastqueue.store import Claim
from fastqueue.stores._sql import Steps, Tables
from fastqueue.stores._sql_faculties import SQLSchedulesInSteps, SQLThrottles
from fastqueue.stores._sql_store import SQLStore
from fastqueue.stores.joins import SQLJoins
from fastqueue.stores.sqlite._access import Access
from fastqueue.stores.sqlite._claim import Request, head_lanes
from fastqueue.stores.sqlite._database import Database, Synchronous
from fastqueue.stores.sqlite._faculties import SQLiteFailedJobs, SQLiteHolds
from fastqueue.stores.sqlite._home import SQLiteHome
from fastqueue.stores.sqlite._inspects import SQLiteInspects
from fastqueue.stores.sqlite._migrates import SQLiteMigrates
from fastqueue.stores.sqlite._moves import SQLiteMoves
from fastqueue.stores.sqlite._push import push_steps
from fastqueue.stores.sqlite._settle import give_back, renew, settle
from fastqueue.stores.sqlite._wakes import SQLiteWakes

__all__ = ["SQLiteStore"]


class SQLiteStore(SQLStore[Access]):
    """Keeps jobs in a SQLite database: the app's own file or one for itself, shared by any processes on the machine.

    One thread of the store's owns one connection; calls that wait for it share a transaction, so that many at once
    cost little more than one. The file is in WAL mode. It must be on a disk of this machine, not on a network's.

    Args:
        path: The file; it is made when it is not there, its folder is not.
        prefix: What the names of the tables begin with.
        synchronous: "FULL": what a push has answered for outlasts a power cut. "NORMAL": it outlasts a crash of the
            process, not for certain a power cut, and a single push costs a quarter.
        migrate: Whether opening makes and upgrades the tables; False: it refuses tables that are not up to date.

    Raises:
        OptionError: the path is that of no file, or the prefix cannot name tables.

    Example:
        >>> SQLiteStore("app.db", synchronous="NORMAL").name
        'sqlite'
    """

    name: ClassVar[str] = "sqlite"
    portion: ClassVar[int] = 500

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        prefix: str = "fastqueue_",
        synchronous: Synchronous = "FULL",
        migrate: bool = True,
    ) -> None:
        self.path = _file_path(path)
        if synchronous not in ("FULL", "NORMAL"):
            raise OptionError(f"synchronous is {synchronous!r}; it takes 'FULL' or 'NORMAL'")
        access = Access(self.path, Tables(prefix), synchronous)
        super().__init__(access)
        self._migrate = migrate
        self._ready = False
        self.schedules = SQLSchedulesInSteps(access, self.push_steps)
        self.holds = SQLiteHolds(access)
        self.failed = SQLiteFailedJobs(access)
        self.throttles = SQLThrottles(access)
        self.wakes = SQLiteWakes(access)
        self.joins = SQLJoins(SQLiteHome(access, self.push_steps))
        self.moves = SQLiteMoves(access)
        self.migrates = self._tables = SQLiteMigrates(access)
        self.inspects = SQLiteInspects(access)

    def __repr__(self) -> str:
        return f"SQLiteStore({self.path!r})"

    @classmethod
    def from_url(cls, url: str, *, migrate: bool = True) -> SQLiteStore:
        """A store from a URL as SQLAlchemy writes it.

        Args:
            url: "sqlite:///relative.db" or "sqlite:////absolute.db"; a driver ("sqlite+aiosqlite") and what follows
                a "?" are ignored.
            migrate: As for the store.

        Raises:
            OptionError: it names no file.

        Example:
            >>> SQLiteStore.from_url("sqlite+aiosqlite:////var/lib/app.db").path
            '/var/lib/app.db'
        """
        _, _, rest = url.partition("://")
        if rest and not rest.startswith("/"):
            raise OptionError(f"{url!r} names no file; write sqlite:///relative.db or sqlite:////absolute.db")
        return cls(rest[1:].partition("?")[0], migrate=migrate)

    async def open(self) -> None:
        if self._ready and self._access.is_open:
            return
        try:
            await (self._tables.migrate() if self._migrate else self._tables.check())
        except Exception:
            self._access.stop()
            raise
        self._ready = True

    async def close(self) -> None:
        self._ready = False
        await self._access.close()

    def push_steps(self, jobs: Sequence[NewJob], now: Moment) -> Steps[list[Pushed]]:
        """The statements of a push, fit for running inside any transaction on the same tables."""
        return push_steps(self.statements, jobs, now)

    async def push(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        if not jobs:
            return []
        return await self._access.change(lambda: self.push_steps(jobs, now))

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
        request = Request(now, token=token, limit=limit, queues=queues, kinds=kinds)
        return await self._access.write(request.take, look=request.look)

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        if not settlements:
            return []
        return await self._access.write(lambda database: settle(database, settlements))

    async def give_back(self, jobs: Sequence[Claimed]) -> list[bool]:
        if not jobs:
            return []
        return await self._access.write(lambda database: give_back(database, jobs))

    async def renew(self, jobs: Sequence[Claimed], *, now: Moment, until: Moment) -> list[bool]:
        if not jobs:
            return []
        return await self._access.write(lambda database: renew(database, jobs, now=now, until=until))

    async def lanes(self) -> list[Lane]:
        def lanes(database: Database) -> list[Lane]:
            return [Lane(lane.queue, lane.kind, lane.mode, lane.head) for lane in head_lanes(database, None)]

        return await self._access.read(lanes)


def _file_path(path: str | os.PathLike[str]) -> str:
    given = os.fspath(path)
    if not given or given.startswith((":memory:", "file:")):
        raise OptionError(
            f"{given!r} is the path of no file; give one such as 'app.db', or use memory:// for jobs that may be lost"
        )
    return os.path.abspath(given)

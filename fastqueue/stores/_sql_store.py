"""What the SQL stores do alike: they ask named statements and read the rows.

A store of a database adds the verbs whose steps its server needs in its own way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

from fastqueue.job import Lane, Moment, StoredJob
from fastqueue.store import Count, Keep, Store
from fastqueue.stores._rows import stored
from fastqueue.stores._sql import Got, Statements, Steps, Tables

__all__ = ["A", "SQLAccess", "SQLStore"]

R = TypeVar("R")
A = TypeVar("A", bound="SQLAccess")
"""A database's own way to it, which has more to it than `SQLAccess` says."""


class SQLAccess(ABC):
    """The way from a store's parts to its database.

    Args:
        tables: The names of its tables.
        statements: What can be asked of them.
    """

    def __init__(self, tables: Tables, statements: Statements) -> None:
        self.tables = tables
        self.statements = statements

    @abstractmethod
    async def ask(self, name: str, /, **values: Any) -> Got:
        """Run a named statement that changes nothing."""

    @abstractmethod
    async def do(self, name: str, /, **values: Any) -> Got:
        """Run a named statement in a transaction of its own."""

    @abstractmethod
    async def change(self, steps: Callable[[], Steps[R]]) -> R:
        """Run a verb's statements in one transaction; where others are in its way the verb may be begun anew."""

    @abstractmethod
    async def close(self) -> None:
        """Give back what the running event loop has of it."""

    async def identify(self) -> str:
        """The text that this set of tables has and no other."""
        return str((await self.ask("meta.identity")).rows[0][0])


class SQLStore(Store, Generic[A]):
    """The verbs that are the same for every dialect.

    Args:
        access: The way to the database.
    """

    keeps = frozenset(Keep)
    portion: ClassVar[int] = 1_000
    """How many rows are pruned in one transaction."""

    def __init__(self, access: A) -> None:
        self._access = access
        self.statements = access.statements

    async def identity(self) -> str:
        """The text that this set of tables has and no other, by which a connection to it is known."""
        return await self._access.identify()

    async def close(self) -> None:
        await self._access.close()

    async def prune(self, now: Moment, *, failed_before: Moment) -> int:
        await self._access.do("prune.kinds", now=now)
        await self._prune("prune.throttles", now=now)
        return await self._prune("prune.failed", before=failed_before)

    async def _prune(self, name: str, **values: Moment) -> int:
        """Delete in portions, each a transaction, so that others get between them."""
        gone = 0
        while True:
            portion = (await self._access.do(name, portion=self.portion, **values)).touched
            gone += portion
            if portion < self.portion:
                return gone

    async def lanes(self) -> list[Lane]:
        return [Lane(*row) for row in (await self._access.ask("lanes.heads")).rows]

    async def counts(self, now: Moment) -> list[Count]:
        return [Count(*row) for row in (await self._access.ask("counts.all", now=now)).rows]

    async def jobs(
        self,
        *,
        state: str | None = None,
        now: Moment,
        kind: str | None = None,
        queue: str | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[StoredJob]:
        got = await self._access.ask(
            "jobs.page", state=state, now=now, kind=kind, queue=queue, after=after, limit=limit
        )
        return [stored(row) for row in got.rows]

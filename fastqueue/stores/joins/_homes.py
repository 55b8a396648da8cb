"""Where a queue's tables are, and how a connection of the app's is known to lead there.

It is asked before the first push through a connection, and remembered for as long as the connection lives.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, TypeAlias

from fastqueue.errors import TransactionEnded, TransactionRefused
from fastqueue.job import Moment, NewJob, Pushed
from fastqueue.stores._sql import Call, Got, Statement, Steps, Tables

__all__ = ["Home", "Push", "ServerHome", "ended_within"]

Push: TypeAlias = Callable[[Sequence[NewJob], Moment], Steps[list[Pushed]]]
"""A store's push, as steps for within any transaction."""


class Home(ABC):
    """The tables of a store.

    Attributes:
        store: The store's name in messages.
        dialects: What SQLAlchemy calls databases of its sort.

    Args:
        tables: Their names.
        push: The store's push.
    """

    store: ClassVar[str]
    dialects: ClassVar[frozenset[str]]

    def __init__(self, tables: Tables, push: Push) -> None:
        self._tables = tables
        self._push = push

    def steps(self, jobs: Sequence[NewJob], now: Moment, known: MutableMapping[Any, Any]) -> Steps[list[Pushed]]:
        """Push jobs through a connection of the app's; `known` is what is remembered of the connection."""
        if not jobs:
            return []
        if self not in known:
            yield from self._check()
            known[self] = True
        return (yield from self._push(jobs, now))

    @abstractmethod
    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """A transaction on a connection of the store's own; see `Joins.transaction`."""

    @abstractmethod
    def _check(self) -> Steps[None]:
        """Refuse a connection that leads elsewhere, without harm to the transaction it is in.

        Raises:
            TransactionRefused: the tables are not there, or they are another queue's.
        """

    async def ask(self, call: Call) -> Got:
        """Run a `fresh` call, on a connection of the store's own; only a store whose steps have any is asked."""
        raise LookupError(f"{call.statement.name} was to be asked beside a transaction in {self.store}")

    def ask_sync(self, call: Call) -> Got:
        """The same as a plain call, from any thread."""
        raise LookupError(f"{call.statement.name} was to be asked beside a transaction in {self.store}")

    def refuse_other(self, dialects: frozenset[str], what: str) -> None:
        """Refuse a handle on a database of another sort.

        Raises:
            TransactionRefused: none of the names is one of this sort's.
        """
        if self.dialects.isdisjoint(dialects):
            raise self._elsewhere(what, " or ".join(sorted(dialects)), self.store)

    def _missing(self, where: str) -> TransactionRefused:
        return TransactionRefused(
            f"in_() was given a connection to {where}, where there is no table {self._tables.quoted('jobs')}: give it "
            "one to the queue's own database; if it is, make the tables by `fastqueue migrate`, or by opening the store"
        )

    def _elsewhere(self, what: str, where: str, own: str) -> TransactionRefused:
        return TransactionRefused(
            f"in_() was given {what} to {where}, but the queue's jobs are in {own}: give it a transaction on the "
            "queue's own database, or push without one"
        )


class ServerHome(Home):
    """Tables on a server: known by a text that no other tables have, and by the name of the database they are in.

    The name tells a database from a copy of it that was restored beside it.
    """

    look: ClassVar[str]
    """SQL that gives the name of the database and whether the table `:name` is in it; it must not fail if not."""
    database: ClassVar[str]
    """The SQL function that gives the name of the database."""

    def __init__(self, tables: Tables, push: Push) -> None:
        super().__init__(tables, push)
        self._look = Call(Statement("joins.look", self.look), {"name": self._named("meta")})
        who = f"SELECT {self.database}, value FROM {tables.quoted('meta')} WHERE name = 'identity'"  # noqa: S608 - ours
        self._who = Statement("joins.identity", who)
        self._own: tuple[str, str] | None = None

    @abstractmethod
    async def apart(self, call: Call) -> Got:
        """Run a call on a connection made for it, on any event loop."""

    async def ask(self, call: Call) -> Got:
        return await self.apart(call)

    def ask_sync(self, call: Call) -> Got:
        # The store's connections belong to an event loop that may be busy waiting for this very thread.
        with ThreadPoolExecutor(1, thread_name_prefix="fastqueue-beside") as thread:
            return thread.submit(asyncio.run, self.apart(call)).result()

    def _named(self, table: str) -> str:
        """A table's name as `look` takes it."""
        return self._tables.name(table)

    def _check(self) -> Steps[None]:
        ((database, there),) = (yield self._look).rows
        if not there:
            raise self._missing(f"the database {database!r}")
        (row,) = (yield Call(self._who, {})).rows
        if tuple(row) != self._own:
            (own,) = (yield Call(self._who, {}, fresh=True)).rows
            self._own = tuple(own)
            if tuple(row) != self._own:
                raise self._elsewhere("a connection", *self._names(row[0], own[0]))

    def _names(self, theirs: str, own: str) -> tuple[str, str]:
        if theirs == own:
            return f"a database {theirs!r}", "another of that name, or in another schema of it"
        return f"the database {theirs!r}", f"the database {own!r}"


def ended_within() -> TransactionEnded:
    """What to tell when a transaction of the store's own is found over at the end of its block."""
    return TransactionEnded(
        "the block of a transaction found it over at its end, and what was done in it may not be kept: a statement "
        "committed or rolled back, or failed and its error was caught. Let errors leave the block, which ends it by "
        "itself; what may fail belongs in a savepoint"
    )

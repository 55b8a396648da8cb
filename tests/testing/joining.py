"""A memory store whose pushes can be part of a transaction, for the clauses of joining."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import deepcopy

from fastqueue.job import Moment, NewJob, Pushed
from fastqueue.store import Enlisted, Joins
from fastqueue.stores._kept import Kept
from fastqueue.stores.memory import MemoryStore


class Transaction(Enlisted):
    """Pushes into a copy of what is kept, and once more into the real one when it commits."""

    def __init__(self, kept: Kept, *, sync: bool) -> None:
        self.sync = sync
        self._seen = deepcopy(kept)
        self._pushed: list[NewJob] = []
        self._calls: list[Callable[[], None]] = []

    async def push(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        return self.push_sync(jobs, now=now)

    def push_sync(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        self._pushed += jobs
        return [self._seen.push(job, move=job.latest) for job in jobs]

    def after_commit(self, wake: Callable[[], None], *, pushed: int) -> bool:
        self._calls.append(wake)
        return True

    def commit(self, kept: Kept) -> None:
        for job in self._pushed:
            kept.push(job, move=job.latest)
        for call in self._calls:
            call()


class Hasty(Transaction):
    """Keeps at once what is pushed: a planted bug."""

    def __init__(self, kept: Kept, *, sync: bool) -> None:
        super().__init__(kept, sync=sync)
        self._seen = kept

    def commit(self, kept: Kept) -> None:
        pass


class Rash(Transaction):
    """Tells of a commit before there is one: a planted bug."""

    def after_commit(self, wake: Callable[[], None], *, pushed: int) -> bool:
        wake()
        return True


class Handles(Joins):
    def __init__(self, begin: Callable[[], AbstractAsyncContextManager[Transaction]]) -> None:
        self._begin = begin

    def enlist(self, handle: object) -> Enlisted:
        assert isinstance(handle, Transaction)
        return handle

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        return self._begin()


class JoiningStore(MemoryStore):
    """A store that can be part of transactions; those it begins itself are of the class `own`."""

    own: type[Transaction] = Transaction

    def __init__(self) -> None:
        super().__init__()
        self.joins = Handles(lambda: self.begin(self.own, sync=False))

    @asynccontextmanager
    async def begin(self, transaction: type[Transaction], *, sync: bool) -> AsyncGenerator[Transaction]:
        begun = transaction(self._kept, sync=sync)
        yield begun
        begun.commit(self._kept)

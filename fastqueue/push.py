"""Pushing: from a value to a job in the store, together with whatever is pushed at the same time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from fastqueue.carriers import carried_text
from fastqueue.clock import as_moment
from fastqueue.errors import OptionError, Unsupported, WrongPlace
from fastqueue.home import in_worker_thread, on_a_loop
from fastqueue.job import Moment, NewJob, Pushed
from fastqueue.kind import Kind
from fastqueue.pushing import How, Pushing
from fastqueue.settings import as_ms
from fastqueue.store import Enlisted, Store
from fastqueue.stores.memory import MemoryStore
from fastqueue.worker.call import HandlerThread

if TYPE_CHECKING:
    from fastqueue.queue import Queue

__all__ = ["AfterCommit", "InStore", "InTransaction"]

T = TypeVar("T")

log = logging.getLogger("fastqueue")


class InStore(Pushing[T]):
    """The pushes of kinds straight into a store: the queue's own, or another that was given to `in_`."""

    def __init__(self, queue: Queue, kinds: Sequence[Kind[T]], store: Store | None = None) -> None:
        self._queue, self._kinds, self._store = queue, kinds, store

    def _check_awaitable(self) -> None:
        self._queue.refuse_while_registering(self._kinds)
        refuse_unawaitable(self._kinds)

    async def _push(self, values: Sequence[T], how: How) -> list[Pushed]:
        queue = self._queue
        if self._store is None:
            # Opened first: what is due now is due by the store's clock, which is not known before.
            await queue.ready()
        with prepared(queue, self._kinds, values, how) as jobs:
            if self._store is not None:
                await self._store.open()
                return await self._store.push(jobs, now=queue.clock.now()) if jobs else []
            return await queue.keep(jobs)

    def _push_sync(self, values: Sequence[T], how: How) -> list[Pushed]:
        self._queue.refuse_while_registering(self._kinds)
        return self._queue.home.from_outside(lambda: self._push(values, how), names(self._kinds))


class InTransaction(Pushing[T]):
    """The pushes of kinds inside a transaction of the app's; the workers are woken when it has committed."""

    def __init__(self, queue: Queue, kinds: Sequence[Kind[T]], enlisted: Enlisted) -> None:
        self._queue, self._kinds, self._enlisted = queue, kinds, enlisted

    def _check_awaitable(self) -> None:
        if self._enlisted.sync and not on_a_loop():
            raise _unawaitable(self._kinds)
        refuse_unawaitable(self._kinds)

    async def _push(self, values: Sequence[T], how: How) -> list[Pushed]:
        queue = self._queue
        # The store is not opened here: making its tables would wait for the very transaction that is to use them.
        with prepared(queue, self._kinds, values, how) as jobs:
            pushed = await self._enlisted.push(jobs, now=queue.clock.now()) if jobs else []
        self._enlisted.after_commit(lambda: queue.committed(jobs), pushed=len(jobs))
        return pushed

    def _push_sync(self, values: Sequence[T], how: How) -> list[Pushed]:
        queue = self._queue
        with prepared(queue, self._kinds, values, how) as jobs:
            pushed = self._enlisted.push_sync(jobs, now=queue.clock.now()) if jobs else []
        self._enlisted.after_commit(lambda: queue.committed(jobs), pushed=len(jobs))
        return pushed


class AfterCommit(Pushing[T]):
    """The pushes of kinds to a store that can join no transaction: they go out right after the commit.

    What the store answers is not known before, so the id of such a push is 0.
    """

    def __init__(
        self, queue: Queue, kinds: Sequence[Kind[T]], after: Callable[[Callable[[], None], int], bool]
    ) -> None:
        self._queue, self._kinds, self._after = queue, kinds, after

    def _check_awaitable(self) -> None:
        refuse_unawaitable(self._kinds)

    async def _push(self, values: Sequence[T], how: How) -> list[Pushed]:
        return self._push_sync(values, how)

    def _push_sync(self, values: Sequence[T], how: How) -> list[Pushed]:
        queue = self._queue
        with prepared(queue, self._kinds, values, how) as jobs:
            kept = list(jobs)
        queue.accept(kept)
        if not self._after(lambda: _push_later(queue, kept), len(kept)):
            raise Unsupported(
                f"kind {names(self._kinds)!r}: the {queue.store.name} store joins no transactions, and this handle "
                "cannot tell when it commits: push after the commit, or give a SQLAlchemy session"
            )
        return [Pushed(0, True) for _ in kept]


def _push_later(queue: Queue, jobs: Sequence[NewJob]) -> None:
    """Push jobs whose transaction has committed, to a store that could not join it."""
    if isinstance(queue.store, MemoryStore) and not queue.runs_inline and queue.home.is_here:
        queue.store.take(jobs)
        queue.notice(jobs)
        return

    async def push() -> None:
        try:
            await queue.ready()
            await queue.keep(jobs)
        except Exception as error:
            log.error("%d jobs could not be pushed after their commit", len(jobs), exc_info=error)

    if not queue.home.soon(push):
        queue.home.from_outside(push, jobs[0].kind)


def prepared(
    queue: Queue, kinds: Sequence[Kind[T]], values: Sequence[T], how: How
) -> AbstractContextManager[list[NewJob]]:
    """The jobs of one push, each value to each kind; around the body, the carriers' own contexts."""
    around = ExitStack()
    if queue.carry:
        return _carrying(queue, kinds, values, how, around)
    return nullcontext(_all_jobs(queue, kinds, values, how, around))


@contextmanager
def _carrying(
    queue: Queue, kinds: Sequence[Kind[T]], values: Sequence[T], how: How, around: ExitStack
) -> Generator[list[NewJob]]:
    with around:
        yield _all_jobs(queue, kinds, values, how, around)


def _all_jobs(queue: Queue, kinds: Sequence[Kind[T]], values: Sequence[T], how: How, around: ExitStack) -> list[NewJob]:
    return [job for kind in kinds for job in _jobs(queue, kind, values, how, around)]


def _jobs(queue: Queue, kind: Kind[T], values: Sequence[T], how: How, around: ExitStack) -> list[NewJob]:
    how.given.check(f"push of {kind.name!r}")
    run_at = _run_at(kind.name, queue.clock.now(), how)
    payloads = [kind.codec.encode(value) for value in values]
    carried: dict[str, str] = {}
    for carrier in queue.carry:
        lane = how.given.queue or kind.options.queue
        around.enter_context(carrier.pushing(kind.name, lane, carried, len(payloads)))
    text = carried_text(kind.name, carried) if queue.keeps_carried else None
    return kind.new_jobs(values, payloads, how, run_at=run_at, carried=text)


def names(kinds: Sequence[Kind[Any]]) -> str:
    """The kinds of a push, for messages."""
    return ", ".join(kind.name for kind in kinds)


def _run_at(kind: str, now: Moment, how: How) -> Moment:
    if how.delay is not None and how.at is not None:
        raise OptionError(f"push of {kind!r}: delay={how.delay!r} and at={how.at!r}; give one")
    if how.at is not None:
        return as_moment(f"push of {kind!r}: at", how.at)
    return now if how.delay is None else now + as_ms(f"push of {kind!r}: delay", how.delay)


def refuse_unawaitable(kinds: Sequence[Kind[Any]]) -> None:
    """Refuse a push in a plain function that the server or the worker runs in a thread: nobody could await it."""
    if on_a_loop():
        return
    if isinstance(threading.current_thread(), HandlerThread) or in_worker_thread():
        raise _unawaitable(kinds)


def _unawaitable(kinds: Sequence[Kind[Any]]) -> WrongPlace:
    return WrongPlace(f"push of {names(kinds)!r} in a plain function, where nobody awaits it: write push_sync(...)")

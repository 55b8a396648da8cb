"""Pushing: from a value to a job in the store, together with whatever is pushed at the same time."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import anyio.from_thread

from fastqueue.carriers import carried_text
from fastqueue.clock import as_moment
from fastqueue.errors import OptionError, StoreUnavailable, Unsupported, WrongPlace
from fastqueue.job import Moment, NewJob, Pushed
from fastqueue.kind import Kind
from fastqueue.pushing import How, Pushing
from fastqueue.settings import as_ms
from fastqueue.store import Enlisted, Store
from fastqueue.worker.call import HandlerThread

if TYPE_CHECKING:
    from fastqueue.queue import Queue

__all__ = ["Coalescer", "InStore", "InTransaction"]

T = TypeVar("T")

MOST_AT_ONCE = 1000


class Coalescer:
    """One push in flight; whatever is pushed meanwhile goes together in the next, each caller with its own answer."""

    def __init__(self, push: Callable[[Sequence[NewJob]], Awaitable[list[Pushed]]]) -> None:
        self._push = push
        self._waiting: deque[tuple[Sequence[NewJob], asyncio.Future[list[Pushed]]]] = deque()
        self._busy = False
        self._task: asyncio.Task[None] | None = None

    async def push(self, jobs: Sequence[NewJob]) -> list[Pushed]:
        """Keep the jobs of one caller, all or none."""
        if not self._busy:
            self._busy = True
            try:
                return await self._push(jobs)
            finally:
                self._go_on()
        mine: asyncio.Future[list[Pushed]] = asyncio.get_running_loop().create_future()
        waits = (jobs, mine)
        self._waiting.append(waits)
        try:
            return await mine
        except asyncio.CancelledError:
            if waits in self._waiting:
                self._waiting.remove(waits)
            raise

    def _go_on(self) -> None:
        if self._waiting:
            self._task = asyncio.create_task(self._flush(), name="fastqueue-push")
        else:
            self._busy = False

    async def _flush(self) -> None:
        try:
            while self._waiting:
                batch = [self._waiting.popleft()]
                size = len(batch[0][0])
                while self._waiting and size + len(self._waiting[0][0]) <= MOST_AT_ONCE:
                    batch.append(self._waiting.popleft())
                    size += len(batch[-1][0])
                await self._deliver(batch)
                # One turn, so that the callers just answered can join the next batch with those that came meanwhile.
                await asyncio.sleep(0)
        finally:
            self._busy = False

    async def _deliver(self, batch: list[tuple[Sequence[NewJob], asyncio.Future[list[Pushed]]]]) -> None:
        try:
            pushed = await self._push([job for jobs, _ in batch for job in jobs])
        except BaseException as error:
            if len(batch) == 1 or isinstance(error, StoreUnavailable | asyncio.CancelledError):
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                if isinstance(error, asyncio.CancelledError):
                    raise
                return
            # One bad job fails its own caller, not its neighbours: halve until it is alone.
            half = len(batch) // 2
            await self._deliver(batch[:half])
            await self._deliver(batch[half:])
            return
        start = 0
        for jobs, future in batch:
            if not future.done():
                future.set_result(pushed[start : start + len(jobs)])
            start += len(jobs)


class InStore(Pushing[T]):
    """The pushes of a kind straight into a store: the queue's own, or another that was given to `in_`."""

    def __init__(self, queue: Queue, kind: Kind[T], store: Store | None = None) -> None:
        self._queue, self._kind, self._store = queue, kind, store

    def _check_awaitable(self) -> None:
        refuse_unawaitable(self._kind.name)

    async def _push(self, values: Sequence[T], how: How) -> list[Pushed]:
        queue = self._queue
        with prepared(queue, self._kind, values, how) as jobs:
            if self._store is not None:
                await self._store.open()
                return await self._store.push(jobs, now=queue.clock.now()) if jobs else []
            await queue.ready()
            pushed = await queue.coalescer.push(jobs) if jobs else []
        queue.pushed(jobs)
        return pushed

    def _push_sync(self, values: Sequence[T], how: How) -> list[Pushed]:
        return self._queue.from_outside(lambda: self._push(values, how), self._kind.name)


class InTransaction(Pushing[T]):
    """The pushes of a kind inside a transaction of the app's; the workers are woken when it has committed."""

    def __init__(self, queue: Queue, kind: Kind[T], enlisted: Enlisted) -> None:
        self._queue, self._kind, self._enlisted = queue, kind, enlisted

    def _check_awaitable(self) -> None:
        if self._enlisted.sync and not _on_a_loop():
            raise _unawaitable(self._kind.name)
        refuse_unawaitable(self._kind.name)

    async def _push(self, values: Sequence[T], how: How) -> list[Pushed]:
        queue = self._queue
        with prepared(queue, self._kind, values, how) as jobs:
            await queue.ready()
            pushed = await self._enlisted.push(jobs, now=queue.clock.now()) if jobs else []
        self._enlisted.after_commit(lambda: queue.committed(jobs), pushed=len(jobs))
        return pushed

    def _push_sync(self, values: Sequence[T], how: How) -> list[Pushed]:
        queue = self._queue
        with prepared(queue, self._kind, values, how) as jobs:
            if not queue.is_open:
                queue.from_outside(queue.ready, self._kind.name)
            pushed = self._enlisted.push_sync(jobs, now=queue.clock.now()) if jobs else []
        self._enlisted.after_commit(lambda: queue.committed(jobs), pushed=len(jobs))
        return pushed


class AfterCommit(Pushing[T]):
    """The pushes of a kind to a store that can join no transaction: they go out right after the commit.

    What the store answers is not known before, so the id of such a push is 0.
    """

    def __init__(self, queue: Queue, kind: Kind[T], after: Callable[[Callable[[], None], int], bool]) -> None:
        self._queue, self._kind, self._after = queue, kind, after

    def _check_awaitable(self) -> None:
        refuse_unawaitable(self._kind.name)

    async def _push(self, values: Sequence[T], how: How) -> list[Pushed]:
        return self._push_sync(values, how)

    def _push_sync(self, values: Sequence[T], how: How) -> list[Pushed]:
        queue = self._queue
        with prepared(queue, self._kind, values, how) as jobs:
            kept = list(jobs)
        if not self._after(lambda: queue.push_later(kept), len(kept)):
            raise Unsupported(
                f"kind {self._kind.name!r}: the {queue.store.name} store joins no transactions, and this handle cannot tell "
                "when it commits: push after the commit, or give a SQLAlchemy session"
            )
        return [Pushed(0, True) for _ in kept]


@contextmanager
def prepared(queue: Queue, kind: Kind[T], values: Sequence[T], how: How) -> Generator[list[NewJob]]:
    """The jobs of one push, with what the carriers give them; around the body, the carriers' own contexts."""
    queue.refuse_while_registering(kind.name)
    how.given.check(f"push of {kind.name!r}")
    run_at = _run_at(kind.name, queue.clock.now(), how)
    payloads = [kind.codec.encode(value) for value in values]
    with ExitStack() as around:
        carried: dict[str, str] = {}
        for carrier in queue.carry:
            around.enter_context(carrier.pushing(kind.name, how.given.queue or kind.options.queue, carried))
        text = carried_text(kind.name, carried) if queue.keeps_carried else None
        yield [
            kind.new_job(value, payload, how, run_at=run_at, carried=text)
            for value, payload in zip(values, payloads, strict=True)
        ]


def _run_at(kind: str, now: Moment, how: How) -> Moment:
    if how.delay is not None and how.at is not None:
        raise OptionError(f"push of {kind!r}: delay={how.delay!r} and at={how.at!r}; give one")
    if how.at is not None:
        return as_moment(f"push of {kind!r}: at", how.at)
    return now if how.delay is None else now + as_ms(f"push of {kind!r}: delay", how.delay)


def refuse_unawaitable(kind: str) -> None:
    """Refuse a push in a plain function that the server or the worker runs in a thread: nobody could await it."""
    if _on_a_loop():
        return
    if isinstance(threading.current_thread(), HandlerThread) or _in_worker_thread():
        raise _unawaitable(kind)


def run_in_worker_thread(call: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run on the event loop that started this worker thread."""
    return anyio.from_thread.run(call)


def in_worker_thread() -> bool:
    """Whether this is a thread that an event loop started for a plain function, such as a `def` route."""
    return _in_worker_thread()


def _unawaitable(kind: str) -> WrongPlace:
    return WrongPlace(f"push of {kind!r} in a plain function, where nobody awaits it: write push_sync(...)")


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _in_worker_thread() -> bool:
    try:
        anyio.from_thread.check_cancelled()
    except RuntimeError:
        return False
    return True

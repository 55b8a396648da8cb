"""The thread that owns a store's connection: callers hand it functions, and those that wait share a transaction.

A function runs from its first statement to the commit whatever becomes of its caller, so a cancelled caller leaves no
transaction open: only the answer is dropped.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeAlias, TypeVar

from fastqueue.errors import StoreUnavailable
from fastqueue.stores.sqlite._database import Database
from fastqueue.stores.sqlite._watch import Watch

__all__ = ["DatabaseThread", "Work"]

R = TypeVar("R")

TOGETHER = 512
"""How many functions share one transaction at most."""

Function: TypeAlias = Callable[[Database], R]


class Work(Generic[R]):
    """A function on its way through the thread, and then its answer.

    Args:
        function: What to run.
        writes: Run it in a transaction.
        look: Ask this first, outside any transaction; unless it answers None, nothing is written.
        loop: The event loop where the answer is awaited; None: a thread waits for it.
    """

    __slots__ = ("answer", "error", "function", "future", "look", "loop", "writes")

    def __init__(
        self,
        function: Function[R],
        *,
        writes: bool,
        look: Function[R | None] | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.function = function
        self.writes = writes
        self.look = look
        self.loop = loop
        self.future: Future[R] | asyncio.Future[R] = Future() if loop is None else loop.create_future()
        self.answer: R | None = None
        self.error: Exception | None = None

    def tell(self) -> None:
        """Give the answer to its caller, if one still waits for it."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.answer)  # type: ignore[arg-type]


class DatabaseThread:
    """One thread with one connection, from its start until it is stopped.

    Args:
        connect: Opens the database; run in the thread.
        watch: Asked to look between transactions.
    """

    def __init__(self, connect: Callable[[], Database], watch: Watch) -> None:
        self._connect = connect
        self._watch = watch
        self._inbox: SimpleQueue[Work[Any] | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._stopped = False
        self._process = os.getpid()
        self.opened: Future[None] = Future()
        self.ended: Future[None] = Future()
        # A process that ends without closing its store is not held up by it: the exit hook lets the thread finish.
        self._thread = threading.Thread(target=self._run, name="fastqueue-sqlite", daemon=True)
        atexit.register(self.stop_and_wait)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it takes functions."""
        return not self._stopped and self._thread.is_alive()

    @property
    def inherited(self) -> bool:
        """Whether this process was forked off while the thread had the file open in another."""
        return os.getpid() != self._process and not self.ended.done()

    def put(self, work: Work[Any]) -> bool:
        """Hand over a function; False: it is stopped, and takes none."""
        with self._gate:
            if not self.alive:
                return False
            self._inbox.put(work)
            return True

    def stop(self) -> None:
        """Take no more functions; end after those that were handed over."""
        with self._gate:
            self._stopped = True
            self._inbox.put(None)

    def stop_and_wait(self) -> None:
        self.stop()
        self._thread.join()

    def _run(self) -> None:
        error: Exception = StoreUnavailable("the SQLite store's thread ended; open the store again")
        try:
            database = self._connect()
        except Exception as raised:
            error = raised
            self.opened.set_exception(raised)
        else:
            self.opened.set_result(None)
            try:
                self._serve(database)
            finally:
                database.close()
                self._watch.lose()
        finally:
            self._refuse_the_rest(error)
            atexit.unregister(self.stop_and_wait)
            self.ended.set_result(None)

    def _refuse_the_rest(self, error: Exception) -> None:
        self.stop()
        left: list[Work[Any]] = []
        while (work := self._inbox.get()) is not None:
            work.error = error
            left.append(work)
        _tell(left)

    def _serve(self, database: Database) -> None:
        while batch := self._next_batch(database):
            try:
                _do(database, batch)
            finally:
                _tell(batch)
            self._watch.look(database)

    def _next_batch(self, database: Database) -> list[Work[Any]]:
        """Wait for a function, and take it with all that wait beside it; none: the end."""
        while True:
            try:
                work = self._inbox.get(timeout=self._watch.wait)
                break
            except Empty:
                self._watch.look(database)
        batch: list[Work[Any]] = []
        while work is not None:
            batch.append(work)
            if len(batch) == TOGETHER or self._inbox.empty():
                return batch
            work = self._inbox.get()
        self._inbox.put(None)
        return batch


def _do(database: Database, batch: list[Work[Any]]) -> None:
    """Run functions: those that write in one transaction, then those that read, which see what came before them."""
    writing = [work for work in batch if work.writes]
    # A look spares the lock to a claim that finds nothing; beside others that write, the lock is taken anyway.
    if all(work.look is not None for work in writing):
        writing = [work for work in writing if not _look(database, work)]
    if writing:
        _write(database, writing)
    for work in batch:
        if not work.writes:
            _read(database, work, work.function)


def _look(database: Database, work: Work[Any]) -> bool:
    """Run a function's look; whether it gave an answer, or an error."""
    assert work.look is not None
    _read(database, work, work.look)
    return work.answer is not None or work.error is not None


def _read(database: Database, work: Work[Any], function: Function[Any]) -> None:
    try:
        work.answer = database.patiently(lambda: function(database))
    except Exception as error:
        work.error = database.in_words(error)


def _write(database: Database, works: list[Work[Any]]) -> None:
    """Run functions in one transaction: one that fails undoes only what it did itself, a failing commit fails all."""
    try:
        database.patiently(database.begin)
        kept = [work for work in works if _write_one(database, work, alone=len(works) == 1)]
        if kept:
            database.patiently(database.commit)
    except Exception as error:
        for work in works:
            work.error = work.error or database.in_words(error)
    database.roll_back()


def _write_one(database: Database, work: Work[Any], *, alone: bool) -> bool:
    try:
        work.answer = work.function(database) if alone else database.apart(work.function)
    except Exception as error:
        if not database.in_transaction:
            raise
        work.error = database.in_words(error)
    return work.error is None


def _tell(works: list[Work[Any]]) -> None:
    """Give answers to their callers, by one call into each of their loops."""
    by_loop: defaultdict[asyncio.AbstractEventLoop | None, list[Work[Any]]] = defaultdict(list)
    for work in works:
        by_loop[work.loop].append(work)
    for loop, theirs in by_loop.items():
        if loop is None:
            _tell_here(theirs)
            continue
        with suppress(RuntimeError):  # a loop that is closed by now: nobody waits there
            loop.call_soon_threadsafe(_tell_here, theirs)


def _tell_here(works: list[Work[Any]]) -> None:
    for work in works:
        work.tell()

"""Where a queue is at home: the event loop its store is open on, and the ways there from other places."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar

import anyio.from_thread

from fastqueue.clock import Clock
from fastqueue.coalesce import Coalescer
from fastqueue.errors import WrongPlace
from fastqueue.store import Store

__all__ = ["Home", "in_worker_thread", "on_a_loop"]

T = TypeVar("T")

_LAST_PUSHES = 5.0
"""Seconds that closing waits for pushes that follow a commit."""


class Home:
    """A store, opened on the loop of whoever needs it: the server's, or each test's own."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening: asyncio.Task[None] | None = None
        self._later: set[asyncio.Task[None]] = set()
        self.coalescer = Coalescer(store)

    @property
    def is_open(self) -> bool:
        """Whether the store is open on a loop that is still there."""
        return self._loop is not None and not self._loop.is_closed()

    async def ready(self) -> None:
        """Open the store on this event loop, if it is not; callers at the same time share one opening."""
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            if self._clock.has_stepped:
                await self._follow()
            return
        if self._opening is None or self._opening.get_loop() is not loop:
            self._opening = loop.create_task(self._open(loop), name="fastqueue-open", context=Context())
        opening = self._opening
        try:
            await asyncio.shield(opening)
        finally:
            if opening.done() and self._opening is opening:
                self._opening = None

    async def _open(self, loop: asyncio.AbstractEventLoop) -> None:
        await self._store.open()
        await self._follow()
        self.coalescer = Coalescer(self._store)
        self._loop = loop

    async def _follow(self) -> None:
        """Ask the store's clock before a push or a claim: one that is ahead would take what others hold."""
        if self._store.time is not None:
            await self._clock.follow(self._store.time.now)

    @property
    def is_here(self) -> bool:
        """Whether this is the store's own loop, or some loop while the store is open on none."""
        return on_a_loop() and (not self.is_open or self._loop is asyncio.get_running_loop())

    async def after_commits(self) -> None:
        """Wait for the pushes that follow a commit."""
        here = asyncio.get_running_loop()
        if later := {task for task in self._later if task.get_loop() is here}:
            await asyncio.wait(later, timeout=_LAST_PUSHES)

    async def close(self) -> None:
        """Close the store, once the pushes that follow a commit are through."""
        await self.after_commits()
        self._loop = None
        await self._store.close()

    def from_outside(self, call: Callable[[], Coroutine[Any, Any, T]], kind: str) -> T:
        """Run a coroutine from a plain function.

        It runs on the loop that started this thread, else on the one where the store is open, else on one of its own.

        Raises:
            WrongPlace: this is the event loop's own thread, which it would block.
        """
        if on_a_loop():
            raise WrongPlace(f"push_sync of {kind!r} would block the event loop: write await push(...)")
        if in_worker_thread():
            return anyio.from_thread.run(call)
        if self._loop is not None and self._loop.is_running():
            return asyncio.run_coroutine_threadsafe(call(), self._loop).result()

        async def alone() -> T:
            try:
                return await call()
            finally:
                await self.close()

        return asyncio.run(alone())

    def later(self, seconds: float, call: Callable[[], object]) -> None:
        """Call something on this event loop, or on the one that started this thread, if it still runs by then."""
        if on_a_loop():
            asyncio.get_running_loop().call_later(seconds, call)
        elif in_worker_thread():
            anyio.from_thread.run_sync(self.later, seconds, call)

    def soon(self, call: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Start a coroutine on the store's loop, from any thread, or else on the one here; False: no loop runs."""
        loop = self._loop
        if not self.is_open and on_a_loop():
            loop = asyncio.get_running_loop()
        if loop is None or not loop.is_running():
            return False

        def start() -> None:
            task = loop.create_task(call(), name="fastqueue-after-commit", context=Context())
            self._later.add(task)
            task.add_done_callback(self._later.discard)

        if on_a_loop() and asyncio.get_running_loop() is loop:
            start()
        else:
            loop.call_soon_threadsafe(start)
        return True


def on_a_loop() -> bool:
    """Whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def in_worker_thread() -> bool:
    """Whether this is a thread that an event loop started for a plain function, such as a `def` route."""
    try:
        anyio.from_thread.check_cancelled()
    except RuntimeError:
        return False
    return True

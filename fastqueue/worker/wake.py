"""The wake: one slot, set from anywhere, that ends the claimer's wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

__all__ = ["Wake"]


class Wake:
    """A wake that is set while nobody waits is remembered once, for the next wait; many count as one."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._event = asyncio.Event()

    def set(self) -> None:
        """Wake, from any thread; harmless when the loop has gone."""
        if threading.get_ident() == self._thread:
            self._event.set()
            return
        try:
            self._loop.call_soon_threadsafe(self._event.set)
        except RuntimeError:
            return

    def clear(self) -> None:
        """Forget a wake. Cleared before a claim, so that none is lost between an empty claim and the wait."""
        self._event.clear()

    async def wait(self, seconds: float | None) -> None:
        """Until the next wake, or for so many seconds; None: until a wake, however long."""
        if self._event.is_set():
            return
        timer = None if seconds is None else self._loop.call_later(max(seconds, 0), self._event.set)
        try:
            await self._event.wait()
        finally:
            if timer is not None:
                timer.cancel()

    async def sleep_through(self, seconds: float, *, until: Callable[[], bool]) -> None:
        """Sleep for so many seconds whatever wakes come, unless one comes when `until` is true."""
        end = self._loop.time() + seconds
        while not until() and (left := end - self._loop.time()) > 0:
            self.clear()
            await self.wait(left)

"""Being told of what other processes push: a commit tells by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from fastqueue.store import Wakes
from fastqueue.stores.sqlite._access import Access

__all__ = ["SQLiteWakes"]


class SQLiteWakes(Wakes):
    """Calls whoever listens within 50 ms of another connection's commit, be it this process's or another's.

    A call says that something has changed, not that a job is due. The store's own commits do not count.
    """

    def __init__(self, access: Access) -> None:
        self._access = access

    async def listen(self, wake: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        listener = object()

        def notify() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody is left to wake
                loop.call_soon_threadsafe(wake)

        watch = self._access.watch
        watch.add(listener, notify)
        try:
            await self._access.read(watch.look)
            self.up = True
            await loop.create_future()
        finally:
            watch.remove(listener)
            self.up = watch.heard

    async def tell(self) -> None:
        """Nothing needs to be done: the commit has told."""

"""How a process notices that another has committed: the number of the file's version, asked in the store's thread."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable

from fastqueue.stores.sqlite._database import Database

__all__ = ["Watch"]

EVERY = 0.05
"""Seconds between two looks; the delay that another process's push may have, for 0.4 % of a core."""


class Watch:
    """Who is to be called when another connection has committed. The store's thread asks; nobody else uses its file."""

    def __init__(self) -> None:
        self._listeners: dict[object, Callable[[], None]] = {}
        self._seen: int | None = None
        self._down = False
        self._next = 0.0

    @property
    def heard(self) -> bool:
        """Whether anybody listens."""
        return bool(self._listeners)

    @property
    def wait(self) -> float | None:
        """Seconds until the next look; None: nobody listens."""
        return max(0.0, self._next - time.monotonic()) if self._listeners else None

    def add(self, listener: object, notify: Callable[[], None]) -> None:
        """Call `notify`, in the thread, for each change from the next look on."""
        if not self._listeners:
            self._seen, self._next = None, 0.0
        self._listeners[listener] = notify

    def remove(self, listener: object) -> None:
        """Call it no more."""
        self._listeners.pop(listener, None)

    def lose(self) -> None:
        """The connection is gone: what has changed until there is another is not known."""
        self._down = True

    def look(self, database: Database) -> None:
        """Ask whether anything has changed, when it is time to."""
        if self.wait != 0.0:
            return
        self._next = time.monotonic() + EVERY
        try:
            version = database.version()
        except sqlite3.Error:
            self.lose()
            return
        changed = self._down or self._seen not in (None, version)
        self._seen, self._down = version, False
        if changed:
            for notify in list(self._listeners.values()):
                notify()

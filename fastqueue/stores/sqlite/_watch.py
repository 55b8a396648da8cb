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
    """Who is to be called when another connection has committed. Its own thread asks; nobody else touches the file."""

    def __init__(self) -> None:
        self._listeners: dict[object, Callable[[], None]] = {}
        self._seen: int | None = None
        self._next = 0.0

    @property
    def heard(self) -> bool:
        """Whether anybody listens."""
        return bool(self._listeners)

    @property
    def wait(self) -> float | None:
        """Seconds until the next look; None: nobody listens."""
        return max(0.0, self._next - time.monotonic()) if self._listeners else None

    def add(self, listener: object, notify: Callable[[], None], database: Database) -> None:
        """Call `notify` after each commit of others from now on; called in the thread."""
        if not self._listeners:
            self._seen = database.version()
        self._listeners[listener] = notify

    def remove(self, listener: object) -> None:
        """Call it no more."""
        self._listeners.pop(listener, None)

    def lose(self) -> None:
        """The connection is gone: the first look on the next one counts as a change."""
        self._seen = None

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
        if version != self._seen:
            self._seen = version
            for notify in list(self._listeners.values()):
                notify()

"""An event loop without waiting: when nothing is left to do now, the clock jumps to the next timer."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

__all__ = ["START", "Stuck", "VirtualLoop", "run_at_once"]

R = TypeVar("R")

START = datetime(2026, 9, 1, 12, tzinfo=UTC)


class Stuck(Exception):
    """Everybody waits, and no timer runs that could change it."""


class _Selector(selectors.SelectSelector):
    """Looks at the sockets without waiting for them, and moves the clock by what it was to wait."""

    seconds = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise Stuck
            self.seconds += max(timeout, 0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs its callbacks in the order of any loop, at a time that only its timers move."""

    def __init__(self) -> None:
        self._seconds = _Selector()
        super().__init__(self._seconds)

    def time(self) -> float:
        """Seconds since it was made."""
        return self._seconds.seconds

    def now(self) -> datetime:
        """The clock on the wall of this world."""
        return START + timedelta(seconds=self.time())


def run_at_once(main: Coroutine[Any, Any, R]) -> R:
    """`asyncio.run` on a virtual loop."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)

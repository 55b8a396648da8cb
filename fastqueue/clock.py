"""The queue's clock: moments from the wall, or from the app's own clock, or from the store's."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from fastqueue.errors import OptionError
from fastqueue.job import Moment

__all__ = ["Clock", "as_datetime", "as_moment"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


def as_moment(what: str, at: datetime) -> Moment:
    """The moment of an aware datetime, floored to the millisecond.

    Raises:
        OptionError: it is not a datetime, or a naive one; the message names `what`.
    """
    if not isinstance(at, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"{what} is {at!r}; it takes an aware datetime, such as datetime.now(timezone.utc)")
    if at.tzinfo is None or at.utcoffset() is None:
        raise OptionError(
            f"{what} is {at!r}, which has no time zone; give it one: at.replace(tzinfo=timezone.utc) if it is UTC"
        )
    return (at - _EPOCH) // _MS


def as_datetime(moment: Moment) -> datetime:
    """The aware datetime, in UTC, of a moment."""
    return _EPOCH + moment * _MS


class Clock:
    """What time it is for one queue.

    Args:
        source: The app's own clock, such as a fake one in a test; None: the machine's, corrected by `offset_ms` to the
            store's where it has one.
    """

    def __init__(self, source: Callable[[], datetime] | None = None) -> None:
        self.source = source
        self.offset_ms = 0

    def now(self) -> Moment:
        """The moment it is."""
        if self.source is None:
            return time.time_ns() // 1_000_000 + self.offset_ms
        return as_moment("the clock's answer", self.source())

    async def follow(self, theirs: Callable[[], Awaitable[Moment]]) -> None:
        """Ask another clock, and go by that one from now on; the app's own clock follows none."""
        if self.source is not None:
            return
        before = self.now()
        asked = await theirs()
        self.offset_ms += asked - (before + self.now()) // 2

    def seconds(self) -> float:
        """Seconds on a clock for durations: one that no clock change moves, or the app's own."""
        return time.monotonic() if self.source is None else self.now() / 1000

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

_STEP_MS = 1000


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


def _wall() -> Moment:
    return time.time_ns() // 1_000_000


def _steady() -> int:
    return time.monotonic_ns() // 1_000_000


class Clock:
    """What time it is for one queue.

    Once another clock was asked, time goes on from its answer by the machine's clock for durations, which nobody sets:
    between two questions no step of the wall clock is seen.

    Args:
        source: The app's own clock, such as a fake one in a test; None: the store's where it has one, and else the
            machine's.
    """

    def __init__(self, source: Callable[[], datetime] | None = None) -> None:
        self.source = source
        self._begun: Moment | None = None
        self._apart = 0

    def now(self) -> Moment:
        """The moment it is."""
        if self.source is not None:
            return as_moment("the clock's answer", self.source())
        return _wall() if self._begun is None else self._begun + _steady()

    async def follow(self, theirs: Callable[[], Awaitable[Moment]]) -> None:
        """Ask another clock, and go by that one from now on; the app's own clock follows none."""
        if self.source is not None:
            return
        before = _steady()
        asked = await theirs()
        steady = _steady()
        self._begun = asked + (steady - before) // 2 - steady
        self._apart = _wall() - steady

    @property
    def wrong_ms(self) -> int:
        """By how much the machine's clock is ahead of the one that was asked; 0: none was."""
        return 0 if self._begun is None else self._apart - self._begun

    @property
    def has_stepped(self) -> bool:
        """Whether the machine's clock was set, or the machine slept, since the other clock was asked."""
        return self._begun is not None and abs(_wall() - _steady() - self._apart) > _STEP_MS

    def seconds(self) -> float:
        """Seconds on a clock for durations: one that no clock change moves, or the app's own."""
        return time.monotonic() if self.source is None else self.now() / 1000

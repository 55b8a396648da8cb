"""A clock that a test moves by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fastqueue.clock import as_moment

__all__ = ["FakeClock"]


class FakeClock:
    """What time it is, until you say otherwise: give it to a queue as its clock.

    Args:
        start: The moment it shows first, as an aware datetime; the default is 2026-09-01 12:00 UTC.

    Raises:
        OptionError: `start` has no time zone.

    Example:
        >>> clock = FakeClock()
        >>> clock.move(90)
        >>> clock()
        datetime.datetime(2026, 9, 1, 12, 1, 30, tzinfo=datetime.timezone.utc)
    """

    def __init__(self, start: datetime = datetime(2026, 9, 1, 12, tzinfo=UTC)) -> None:
        self.set(start)

    def __call__(self) -> datetime:
        """The moment it shows, in UTC."""
        return self._now

    def move(self, by: float | timedelta) -> None:
        """Move it on by seconds or a timedelta; a negative one moves it back."""
        self._now += by if isinstance(by, timedelta) else timedelta(seconds=by)

    def set(self, to: datetime) -> None:
        """Have it show an aware datetime.

        Raises:
            OptionError: `to` has no time zone.
        """
        as_moment("the clock's time", to)
        self._now = to.astimezone(UTC)

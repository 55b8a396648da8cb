"""When a kind is pushed by itself: each multiple of a period, or the times of a cron expression in a zone.

A schedule is a value. It holds no clock and keeps nothing between calls: every instance that asks it the same
question gets the same answer, whatever time zone the process itself is in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import MAXYEAR, UTC, datetime, timedelta
from typing import Protocol

from fastqueue._cron import SEARCHED_YEARS, Pattern, parse
from fastqueue._zones import Zone, load_zone
from fastqueue.errors import OptionError, ScheduleError

__all__ = ["Cron", "Every", "Schedule", "cron", "every", "needs_zone_data"]

_MILLISECOND = timedelta(milliseconds=1)
_REPEATED_AT_MOST = timedelta(days=2)
"""No clock ever went back by more than a day, so a change longer ago than this has nothing left to repeat."""
_LAST_YEAR = MAXYEAR - 2
"""The last that cron looks at: beyond it a datetime may not hold the reading of another zone, or the next year."""


class Schedule(Protocol):
    """What `Kind.schedule` takes: anything that answers when it comes round next.

    The answer must be the same on every instance, so it may depend on nothing but `after`.

    Example:
        >>> class Once:
        ...     def next(self, after: datetime, /) -> datetime | None:
        ...         moment = datetime(2030, 1, 1, tzinfo=UTC)
        ...         return moment if after < moment else None
        >>> schedule: Schedule = Once()
    """

    def next(self, after: datetime, /) -> datetime | None:
        """The first time later than `after`, in UTC; None: it never comes round again.

        Args:
            after: An aware moment in UTC.
        """
        ...


@dataclass(frozen=True, slots=True, repr=False)
class Every:
    """The multiples of a period, counted from 0001-01-01 00:00 UTC; made by `every`.

    Attributes:
        period: The time from one to the next, in whole milliseconds.
    """

    period: timedelta

    def __post_init__(self) -> None:
        if self.period < _MILLISECOND or self.period % _MILLISECOND:
            raise OptionError(f"every({self.period!r}): a period is whole milliseconds, and one at least")

    def next(self, after: datetime, /) -> datetime | None:
        """The first multiple later than `after`, in UTC; None past the year 9999.

        Args:
            after: An aware moment, in any zone.

        Raises:
            OptionError: `after` has no zone.
        """
        passed = (_utc(after) - datetime.min) // self.period
        try:
            return (datetime.min + (passed + 1) * self.period).replace(tzinfo=UTC)
        except OverflowError:
            return None

    def __str__(self) -> str:
        for unit in ("days", "hours", "minutes", "seconds", "milliseconds"):
            count, rest = divmod(self.period, timedelta(**{unit: 1}))
            if not rest:
                break
        return f"every {unit[:-1]}" if count == 1 else f"every {count} {unit}"

    def __repr__(self) -> str:
        seconds, rest = divmod(self.period, timedelta(seconds=1))
        return f"every({seconds})" if not rest else f"every({self.period!r})"


@dataclass(frozen=True, slots=True, repr=False)
class Cron:
    """The times of a cron expression on a zone's clock; made by `cron`.

    Attributes:
        expression: The expression, with one space between its fields.
        tz: The zone's name; for "Local" that of the server's own zone, if it has one.
    """

    expression: str
    tz: str
    _pattern: Pattern = field(compare=False)
    _zone: Zone = field(compare=False)

    def next(self, after: datetime, /) -> datetime | None:
        """The first time later than `after`, in UTC; None: none in the next 8 years.

        The zone's time is cut at its clock changes. On each stretch between two of them the expression is
        looked up on the clock as it runs there, and a match that lies beyond the end belongs to a later one.

        Args:
            after: An aware moment, in any zone.

        Raises:
            OptionError: `after` has no zone.
        """
        instant = _utc(after)
        if instant.year > _LAST_YEAR:
            return None
        reading = self._zone.reading(instant)
        offset = reading - instant
        last_year = min(reading.year + SEARCHED_YEARS, _LAST_YEAR)
        match = self._pattern.first(self._unshown(instant, reading), last_year)
        while match is not None:
            change = self._zone.first_change(instant, match - offset)
            if change is None:
                return (match - offset).replace(tzinfo=UTC)
            instant, offset = change.at, change.new - change.at
            if self._pattern.fixed:
                # A match from `old` on: skipped by a clock going forward, or not yet shown by one going back.
                if match < change.new:
                    return change.at.replace(tzinfo=UTC)
            elif match < change.new or change.new < change.old:
                match = self._pattern.first(change.new, last_year)
        return None

    def _unshown(self, instant: datetime, reading: datetime) -> datetime:
        """The first reading after `instant` to look at: fixed times pass over what the clock shows again."""
        start = reading + datetime.resolution
        if self._pattern.fixed:
            last = self._zone.first_change(instant - _REPEATED_AT_MOST, instant)
            return start if last is None else max(start, last.old)
        return start

    def __str__(self) -> str:
        return f"{self.expression} ({self.tz})"

    def __repr__(self) -> str:
        return f"cron({self.expression!r}, tz={self.tz!r})"


def every(duration: int | float | timedelta) -> Every:
    """A schedule of each multiple of a period.

    Multiples are counted from 0001-01-01 00:00 UTC, a Monday: an hour is on the hour, a day is midnight UTC,
    seven days are Monday's midnight. They do not move with the time a job takes, nor with a restart.

    Args:
        duration: The period, in seconds or as a timedelta: whole milliseconds, and one at least.

    Returns:
        A value with `next(after)`, which equals another of the same period.

    Raises:
        OptionError: The period is not a number of whole milliseconds, or is less than one.

    Example:
        >>> from datetime import UTC, datetime
        >>> print(every(900))
        every 15 minutes
        >>> every(900).next(datetime(2026, 9, 26, 10, 7, 30, tzinfo=UTC))
        datetime.datetime(2026, 9, 26, 10, 15, tzinfo=datetime.timezone.utc)
    """
    if isinstance(duration, timedelta):
        return Every(duration)
    if isinstance(duration, bool):
        raise OptionError(f"every({duration!r}): a period is seconds or a timedelta")
    try:
        return Every(timedelta(seconds=duration))
    except (OverflowError, TypeError, ValueError):
        raise OptionError(
            f"every({duration!r}): a period is seconds or a timedelta, in whole milliseconds, and one at least"
        ) from None


def cron(expression: str, tz: str = "UTC") -> Cron:
    """A schedule of the times that a cron expression names on a zone's clock.

    Five fields: minute, hour, day of the month, month, day of the week. Each is `*`, a number, a range `1-5`, a
    list `1,15`, and any of those with a step, `*/15`; months and days of the week may be named, `JAN`, `MON`.
    Or a macro: `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually`. When neither day
    field begins with `*`, a day that matches either will do; otherwise it must match both.

    When the zone's clock changes, what happens depends on whether the expression names fixed times, with neither
    the minute nor the hour beginning with `*`:

    - a fixed time in the skipped hour comes at the moment of the change, and several come once;
      a fixed time in the repeated hour comes the first time only;
    - any other does not come in the skipped hour, and comes both times in the repeated one.

    Args:
        expression: The expression.
        tz: The zone, by its name in the IANA database; "Local" is the server's own, found now. Default: UTC.

    Returns:
        A value with `next(after)`, which equals another of the same expression and zone.

    Raises:
        ScheduleError: It is no expression, or never comes round (the 30th of February); or there is no such zone.

    Example:
        >>> from datetime import UTC, datetime
        >>> nightly = cron("30 2 * * *", tz="Europe/Paris")
        >>> nightly.next(datetime(2027, 3, 27, 12, tzinfo=UTC))  # that night, 2:00 becomes 3:00 at 1:00 UTC
        datetime.datetime(2027, 3, 28, 1, 0, tzinfo=datetime.timezone.utc)
        >>> nightly
        cron('30 2 * * *', tz='Europe/Paris')
    """
    if not isinstance(expression, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ScheduleError(f"cron({expression!r}): it takes five fields as a text, such as '0 2 * * *'")
    zone = load_zone(tz)
    return Cron(" ".join(expression.split()), zone.name, parse(expression), zone)


def needs_zone_data(when: Schedule) -> bool:
    """Whether instances with different zone data may answer differently; of a schedule of the app's own: who knows."""
    return not (isinstance(when, Every) or (isinstance(when, Cron) and when.tz in ("UTC", "Etc/UTC")))


def _utc(after: datetime) -> datetime:
    """The instant of `after` as a naive datetime in UTC."""
    if after.utcoffset() is None:
        raise OptionError(f"after {after!r} has no zone: pass an aware datetime, such as datetime.now(UTC)")
    return after.astimezone(UTC).replace(tzinfo=None)

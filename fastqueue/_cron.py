"""A cron expression read into the days and times it names; no zone and no instant in sight.

Everything here is a reading of a wall clock, a naive datetime. What a zone's clock does to it is `schedule`'s.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from fastqueue.errors import ScheduleError

__all__ = ["SEARCHED_YEARS", "Pattern", "parse"]

SEARCHED_YEARS = 8
"""How many calendar years on a search gives up; a leap day is never further away, not even around 2100."""

_DAY = timedelta(days=1)
_TRIED_FROM = datetime(2024, 1, 1)
_ITEM = re.compile(r"(?:\*|([0-9A-Za-z]+)(?:-([0-9A-Za-z]+))?)(?:/([0-9]+))?")
_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@dataclass(frozen=True, slots=True)
class _Field:
    """What one of the five fields may hold; `names` stand for the numbers from `low` on."""

    title: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = f" or {self.names[0]}-{self.names[-1]}" if self.names else ""
        return f"{self.title} ({self.low}-{self.high}{names})"

    def values(self, text: str) -> frozenset[int]:
        """Each number that the field's text names."""
        return frozenset(number for item in text.split(",") for number in self._item(item))

    def _item(self, item: str) -> range:
        found = _ITEM.fullmatch(item)
        if found is None:
            raise ValueError(f"{item!r} is no number, range, * or step of the {self}")
        low, high, step = found.groups()
        first = self.low if low is None else self._number(low)
        if high is not None:
            last = self._number(high)
        elif low is None or step is not None:
            last = self.high
        else:
            last = first
        if first > last:
            raise ValueError(f"the range {item!r} of the {self} runs backwards")
        if step is not None and int(step) == 0:
            raise ValueError(f"the step of {item!r} in the {self} must be 1 or more")
        return range(first, last + 1, int(step or 1))

    def _number(self, text: str) -> int:
        name = text.upper()
        if name in self.names:
            return self.low + self.names.index(name)
        if not text.isdigit() or not self.low <= int(text) <= self.high:
            raise ValueError(f"{text!r} is outside the {self}")
        return int(text)


_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 7, _WEEKDAYS),
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """The days and the times of day that an expression names.

    Attributes:
        times: Each time of a matching day, in order.
        weekdays: As in ISO 8601: Monday is 1, Sunday 7.
        either: A day needs to match only one of the two day fields, since neither begins with `*`.
        fixed: Neither the minute nor the hour begins with `*`: it names times, rather than a beat.
    """

    times: tuple[time, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool
    fixed: bool

    def first(self, start: datetime, last_year: int) -> datetime | None:
        """The first reading that matches, `start` or later; None: there is none up to the end of `last_year`."""
        for day in self._days(start.date(), last_year):
            at = bisect_left(self.times, start.time()) if day == start.date() else 0
            if at < len(self.times):
                return datetime.combine(day, self.times[at])
        return None

    def _days(self, day: date, last_year: int) -> Iterator[date]:
        while day.year <= last_year:
            if day.month not in self.months:
                day = date(day.year + day.month // 12, day.month % 12 + 1, 1)
                continue
            if self._matches(day):
                yield day
            day += _DAY

    def _matches(self, day: date) -> bool:
        in_month, in_week = day.day in self.days, day.isoweekday() in self.weekdays
        return (in_month or in_week) if self.either else (in_month and in_week)


def parse(expression: str) -> Pattern:
    """Read an expression of five fields, or a macro such as `@daily`.

    Raises:
        ScheduleError: It is no expression, or names a day that never comes.
    """
    try:
        return _read(expression)
    except ValueError as wrong:
        raise ScheduleError(f"cron expression {expression!r}: {wrong}") from None


def _read(expression: str) -> Pattern:
    text = expression.strip()
    if text.startswith("@") and text.lower() not in _MACROS:
        raise ValueError(f"the macros are {', '.join(_MACROS)}; for a period, use every()")
    parts = _MACROS.get(text.lower(), text).split()
    if len(parts) != len(_FIELDS):
        raise ValueError(f"it needs 5 fields, {', '.join(map(str, _FIELDS))}; it has {len(parts)}")
    minute, hour, day, month, weekday = parts
    minutes, hours, days, months, weekdays = (field.values(part) for field, part in zip(_FIELDS, parts, strict=True))
    pattern = Pattern(
        times=tuple(time(h, m) for h in sorted(hours) for m in sorted(minutes)),
        days=days,
        months=months,
        weekdays=frozenset(number or 7 for number in weekdays),
        either=not (day.startswith("*") or weekday.startswith("*")),
        fixed=not (minute.startswith("*") or hour.startswith("*")),
    )
    last_year = _TRIED_FROM.year + SEARCHED_YEARS
    if pattern.first(_TRIED_FROM, last_year) is None:
        fields = f"day of the month {day}, month {month}, day of the week {weekday}"
        raise ValueError(f"it never comes round: {fields} meet on no day from {_TRIED_FROM.year} to {last_year}")
    return pattern

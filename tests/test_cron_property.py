"""Cron against an oracle that walks a zone's clock minute by minute and knows nothing of how cron searches."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from fastqueue.errors import ScheduleError
from fastqueue.schedule import Cron, cron

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)

YEARS = {
    "Africa/Cairo": (2026, 2027),  # forward at midnight, back at midnight
    "Africa/Casablanca": (2026, 2027),  # Ramadan
    "America/Asuncion": (2024,),  # forward at midnight, then for good
    "America/Caracas": (2007, 2016),  # half an hour, each way, for good
    "America/Chicago": (2026,),
    "America/Havana": (2026, 2027),  # forward at midnight
    "America/Los_Angeles": (2014,),
    "America/New_York": (2026, 2027),
    "America/Nuuk": (2026, 2027),  # its gap ends at midnight
    "America/Santiago": (2026,),  # both at midnight
    "America/Sao_Paulo": (2018,),  # both at midnight
    "America/St_Johns": (2010,),  # one minute past midnight
    "Antarctica/Troll": (2026, 2027),  # two hours
    "Asia/Amman": (2021,),  # midnight, and one in the morning
    "Asia/Beirut": (2026, 2027),  # both at midnight
    "Asia/Gaza": (2026,),
    "Asia/Kathmandu": (1985, 1986),  # a quarter of an hour
    "Asia/Kolkata": (1945,),
    "Asia/Pyongyang": (2015, 2018),  # half an hour
    "Asia/Tehran": (2022,),  # both at midnight, with a half-hour offset
    "Atlantic/Azores": (2026,),  # its gap begins at midnight
    "Australia/Adelaide": (2026,),  # a half-hour offset
    "Australia/Lord_Howe": (2026, 2027),  # half an hour
    "Europe/Dublin": (2026,),
    "Europe/London": (2025, 2026),
    "Europe/Paris": (2026, 2027),
    "Europe/Simferopol": (2014,),  # two hours at once
    "Pacific/Apia": (2011, 2012),  # a day left out
    "Pacific/Chatham": (2026, 2027),  # a 45-minute offset
    "Pacific/Kwajalein": (1993,),  # a day left out
    "Pacific/Norfolk": (2015, 2026),  # half an hour back, for good
}


@dataclass(frozen=True, slots=True)
class Minute:
    """A minute of a clock: when it comes, what it shows, whether that is shown again, and what was skipped."""

    at: datetime
    shown: datetime
    again: bool
    skipped: tuple[datetime, ...]


def reading(zone: str, at: datetime) -> datetime:
    return at.astimezone(ZoneInfo(zone))


def minutes(zone: str, start: datetime, count: int) -> tuple[Minute, ...]:
    """What a zone's clock does, minute by minute; the readings are those of a naive clock."""
    found: list[Minute] = []
    last = datetime.combine(*split(reading(zone, start - MINUTE)))
    for number in range(count):
        at = start + number * MINUTE
        local = reading(zone, at)
        shown = datetime.combine(*split(local))
        jump = (shown - last) // MINUTE
        skipped = tuple(last + step * MINUTE for step in range(1, jump)) if jump > 1 else ()
        found.append(Minute(at, shown, local.fold == 1, skipped))
        last = shown
    return tuple(found)


def split(local: datetime) -> tuple[date, time]:
    return local.date(), time(local.hour, local.minute)


@cache
def windows() -> tuple[tuple[str, tuple[Minute, ...]], ...]:
    """Four days of each zone around each change of its clock."""
    found: list[tuple[str, tuple[Minute, ...]]] = []
    for zone, years in YEARS.items():
        for year in years:
            for number in range(365):
                start = datetime(year, 1, 1, tzinfo=UTC) + number * DAY
                if reading(zone, start).utcoffset() != reading(zone, start + DAY).utcoffset():
                    found.append((zone, minutes(zone, start - DAY, 4 * 1440)))
    return tuple(found)


def names(text: str, value: int, low: int, high: int) -> bool:
    """Whether the text of a field names a value."""
    for item in text.split(","):
        span, _, step = item.partition("/")
        first, dash, last = span.partition("-")
        start = low if first == "*" else int(first)
        end = int(last) if dash else high if step or first == "*" else start
        if start <= value <= end and (value - start) % int(step or 1) == 0:
            return True
    return False


@dataclass(frozen=True, slots=True)
class Oracle:
    """The rule as a person states it: which minutes of a clock an expression runs at."""

    fixed: bool
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[tuple[int, int, int]]

    @classmethod
    def of(cls, expression: str, shown: set[tuple[int, int, int]]) -> Oracle:
        """`shown` holds the month, day and weekday (from Sunday, 0) of each day that will be asked about."""
        minute, hour, day, month, weekday = expression.split()
        both = day[0] == "*" or weekday[0] == "*"
        days: set[tuple[int, int, int]] = set()
        for m, d, w in shown:
            in_month = names(day, d, 1, 31)
            in_week = names(weekday, w, 0, 7) or (w == 0 and names(weekday, 7, 0, 7))
            if names(month, m, 1, 12) and ((in_month and in_week) if both else (in_month or in_week)):
                days.add((m, d, w))
        return cls(
            fixed=minute[0] != "*" and hour[0] != "*",
            minutes=frozenset(value for value in range(60) if names(minute, value, 0, 59)),
            hours=frozenset(value for value in range(24) if names(hour, value, 0, 23)),
            days=frozenset(days),
        )

    def matches(self, shown: datetime) -> bool:
        return (
            shown.minute in self.minutes
            and shown.hour in self.hours
            and (shown.month, shown.day, shown.isoweekday() % 7) in self.days
        )

    def runs(self, minute: Minute) -> bool:
        if not self.fixed:
            return self.matches(minute.shown)
        return (self.matches(minute.shown) and not minute.again) or any(map(self.matches, minute.skipped))

    def after(self, moment: datetime, window: tuple[Minute, ...]) -> Iterator[datetime]:
        """Each minute of a window later than a moment at which it runs."""
        for minute in window[(moment - window[0].at) // MINUTE + 1 :]:
            if self.runs(minute):
                yield minute.at


def any_field(rng: random.Random, low: int, high: int) -> str:
    first, last = sorted(rng.sample(range(low, high + 1), 2))
    step = rng.choice((1, 2, 3, 5, 10, 15, 30))
    shapes = (f"{first}", f"{first}-{last}", f"{first}-{last}/{step}", f"{first}/{step}", f"*/{step}", "*")
    return ",".join(rng.sample(shapes, rng.choice((1, 1, 1, 2, 3))))


def any_expression(rng: random.Random) -> str:
    """Mostly in the small hours, where clocks change, and on any day."""
    minute = rng.choice((any_field(rng, 0, 59), f"{rng.choice((0, 1, 15, 30, 45, 59))}", "0,30", "0-59", "0,*"))
    hour = rng.choice((any_field(rng, 0, 23), any_field(rng, 0, 3), f"{rng.choice((23, 0, 0, 1, 2, 3))}", "*"))
    day = rng.choice(("*", "*", "*", any_field(rng, 1, 31), "*/2"))
    month = rng.choice(("*", "*", "*", any_field(rng, 1, 12)))
    weekday = rng.choice(("*", "*", "*", any_field(rng, 0, 7), "0", "*/2"))
    return f"{minute} {hour} {day} {month} {weekday}"


def dates(window: tuple[Minute, ...]) -> set[tuple[int, int, int]]:
    """The month, day and weekday of each date that a window's clock shows or skips."""
    shown = {reading.date() for minute in window for reading in (minute.shown, *minute.skipped)}
    return {(date.month, date.day, date.isoweekday() % 7) for date in shown}


def check(seed: int, count: int) -> None:
    rng = random.Random(seed)
    seen = [(zone, window, dates(window)) for zone, window in windows()]
    compared = 0
    for _ in range(count):
        zone, window, shown = rng.choice(seen)
        expression = any_expression(rng)
        try:
            when = cron(expression, zone)
        except ScheduleError:  # it never comes round
            continue
        moment = window[rng.randrange(3 * 1440)].at
        moment += timedelta(microseconds=rng.choice((0, 0, 1, 15_000_000, 59_999_999)))
        expected = Oracle.of(expression, shown).after(moment, window)
        for _ in range(3):
            found, right = when.next(moment), next(expected, None)
            where = f"{when} after {moment:%Y-%m-%d %H:%M:%S.%f}: {found}, and {right} by the walk"
            if right is None:
                assert found is None or found > window[-1].at, where
                break
            assert found == right, where
            moment, compared = right, compared + 1
    assert compared > count


def test_the_windows_hold_every_sort_of_change() -> None:
    jumps = {
        (minute.shown - before.shown - MINUTE) // MINUTE
        for _, window in windows()
        for before, minute in pairwise(window)
    }
    assert len({zone for zone, _ in windows()}) == len(YEARS) >= 20
    assert jumps >= {0, 15, 30, 60, 120, 1440, -30, -60, -120}


def test_cron_agrees_with_a_walk_minute_by_minute() -> None:
    check(seed=20261025, count=3_000)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_cron_agrees_with_a_longer_walk_minute_by_minute(seed: int) -> None:
    check(seed, count=20_000)


def check_each_minute(schedules: list[Cron], step: int) -> None:
    """From each minute of both days around a change: later than that minute, and never earlier than before."""
    for when in schedules:
        for zone, window in windows():
            if when.tz != zone:
                continue
            last = window[0].at
            for minute in window[1440 : 3 * 1440 : step]:
                found = when.next(minute.at)
                assert found is not None
                assert found > minute.at, (when, minute)
                assert found >= last, (when, minute)
                last = found


def some(count: int) -> list[Cron]:
    expressions = ["* * * * *", "30 2 * * *", "@daily", "*/20 1,2 * * *", "15 1,2 * * *", "0 */2 * * *", "59 23 * * *"]
    rng = random.Random(69)
    while len(expressions) < count:
        expressions.append(f"{any_field(rng, 0, 59)} {any_field(rng, 0, 23)} * * *")
    return [cron(expression, zone) for expression in expressions for zone in YEARS]


def test_time_never_goes_back_whichever_minute_it_is_asked_from() -> None:
    check_each_minute(some(7), step=17)


@pytest.mark.long
def test_time_never_goes_back_for_fifty_expressions_from_every_minute() -> None:
    check_each_minute(some(50), step=1)

from __future__ import annotations

import random
from datetime import UTC, datetime, time, timedelta
from itertools import product
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from cronsim import CronSim

from fastqueue._cron import Pattern, parse
from fastqueue.errors import ScheduleError
from fastqueue.schedule import cron

EVERY_DAY = frozenset(range(1, 32))
EVERY_MONTH = frozenset(range(1, 13))
EVERY_WEEKDAY = frozenset(range(1, 8))


def minutes(text: str) -> list[int]:
    return [time.minute for time in parse(f"{text} 0 * * *").times]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", [0]),
        ("05", [5]),
        ("007", [7]),
        ("59", [59]),
        ("*", list(range(60))),
        ("*/15", [0, 15, 30, 45]),
        ("*/100", [0]),
        ("*/99999999999999999999", [0]),
        ("5/15", [5, 20, 35, 50]),
        ("5-5", [5]),
        ("35-35", [35]),
        ("5-5/3", [5]),
        ("0-59", list(range(60))),
        ("10-20/5", [10, 15, 20]),
        ("1,1,2-4/2", [1, 2, 4]),
        ("*/7,3", [0, 3, 7, 14, 21, 28, 35, 42, 49, 56]),
        ("59,0", [0, 59]),
        ("0,*", list(range(60))),
    ],
)
def test_a_field_is_a_list_of_numbers_ranges_and_steps(text: str, expected: list[int]) -> None:
    assert minutes(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", {7}),
        ("7", {7}),
        ("0,7", {7}),
        ("1-5", {1, 2, 3, 4, 5}),
        ("MON-FRI", {1, 2, 3, 4, 5}),
        ("mon,Wed,fRI", {1, 3, 5}),
        ("MON-7", EVERY_WEEKDAY),
        ("SUN-SAT", EVERY_WEEKDAY),
        ("6-7", {6, 7}),
        ("5/1", {5, 6, 7}),
        ("*/2", {7, 2, 4, 6}),
        ("*", EVERY_WEEKDAY),
    ],
)
def test_days_of_the_week_have_two_sundays_and_names(text: str, expected: set[int]) -> None:
    assert parse(f"0 0 * * {text}").weekdays == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("JAN-3", {1, 2, 3}), ("jan,Jul", {1, 7}), ("oct/1", {10, 11, 12}), ("*/6", {1, 7}), ("*", EVERY_MONTH)],
)
def test_months_have_names(text: str, expected: set[int]) -> None:
    assert parse(f"0 0 * {text} *").months == expected


@pytest.mark.parametrize(
    ("macro", "fields"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        (" @Daily ", "0 0 * * *"),
        ("\t@WEEKLY\n", "0 0 * * 0"),
        (" 0\t2  * *\n1-5 ", "0 2 * * 1-5"),
        ("05 02 * * *", "5 2 * * *"),
    ],
)
def test_an_expression_is_read_whatever_its_spaces_and_macros(macro: str, fields: str) -> None:
    assert parse(macro) == parse(fields)


def test_the_times_of_a_day_are_in_order() -> None:
    assert parse("30,0 9,8 * * *").times == (time(8), time(8, 30), time(9), time(9, 30))


@pytest.mark.parametrize(
    ("day", "weekday", "either"),
    [
        ("13", "5", True),
        ("1-31", "5", True),
        ("13", "0-7", True),
        ("*", "5", False),
        ("*/2", "5", False),
        ("13", "*", False),
        ("13", "*/2", False),
        ("*", "*", False),
        ("*,13", "5", False),
        ("13,*", "5", True),
    ],
)
def test_either_day_field_will_do_when_neither_begins_with_a_star(day: str, weekday: str, either: bool) -> None:
    assert parse(f"0 0 {day} * {weekday}").either is either


@pytest.mark.parametrize(
    ("minute", "hour", "fixed"),
    [
        ("30", "2", True),
        ("0-59", "0-23", True),
        ("0,*", "2", True),
        ("5/15", "2", True),
        ("*", "2", False),
        ("*/30", "2", False),
        ("0", "*", False),
        ("0", "*/2", False),
        ("*,0", "2", False),
    ],
)
def test_a_time_is_fixed_when_neither_minute_nor_hour_begins_with_a_star(minute: str, hour: str, fixed: bool) -> None:
    assert parse(f"{minute} {hour} * * *").fixed is fixed


@pytest.mark.parametrize(
    "expression",
    ["0 0 30 2 1", "0 0 31 2 1-5", "0 0 29 2 *", "48 14 31 jun sun", "0 0 31 1,2 *", "0 0 30 2 0-7"],
)
def test_a_day_that_comes_round_at_all_is_accepted(expression: str) -> None:
    assert parse(expression).first(datetime(2026, 1, 1), 2034) is not None


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("", "it needs 5 fields, minute (0-59), hour (0-23), day of the month (1-31), "),
        ("  ", "; it has 0"),
        ("noon", "; it has 1"),
        ("0 2 *", "; it has 3"),
        ("0 2 * *", "; it has 4"),
        ("0 0 2 * * *", "; it has 6"),
        ("0 0 2 * * * 2026", "; it has 7"),
        ("60 * * * *", "'60' is outside the minute (0-59)"),
        ("* 24 * * *", "'24' is outside the hour (0-23)"),
        ("* * 0 * *", "'0' is outside the day of the month (1-31)"),
        ("* * 32 * *", "'32' is outside the day of the month (1-31)"),
        ("* * * 13 *", "'13' is outside the month (1-12 or JAN-DEC)"),
        ("* * * 0 *", "'0' is outside the month (1-12 or JAN-DEC)"),
        ("* * * * 8", "'8' is outside the day of the week (0-7 or SUN-SAT)"),
        ("50-60 * * * *", "'60' is outside the minute (0-59)"),
        ("-1 * * * *", "'-1' is no number, range, * or step of the minute (0-59)"),
        ("+5 * * * *", "'+5' is no number"),
        ("1_0 * * * *", "'1_0' is no number"),
        ("\u0665 * * * *", "'\u0665' is no number"),
        ("\u00b2 * * * *", "'\u00b2' is no number"),
        ("5.0 * * * *", "'5.0' is no number"),
        ("0x5 * * * *", "'0x5' is outside the minute"),
        ("5-1 * * * *", "the range '5-1' of the minute (0-59) runs backwards"),
        ("*/0 * * * *", "the step of '*/0' in the minute (0-59) must be 1 or more"),
        ("*/00 * * * *", "the step of '*/00' in the minute (0-59) must be 1 or more"),
        ("*/x * * * *", "'*/x' is no number"),
        ("*/-5 * * * *", "'*/-5' is no number"),
        ("noon * * * *", "'noon' is outside the minute (0-59)"),
        ("1, * * * *", "'' is no number"),
        (",1 * * * *", "'' is no number"),
        ("1,,2 * * * *", "'' is no number"),
        ("1- * * * *", "'1-' is no number"),
        ("5/ * * * *", "'5/' is no number"),
        ("/5 * * * *", "'/5' is no number"),
        ("*-5 * * * *", "'*-5' is no number"),
        ("5-* * * * *", "'5-*' is no number"),
        ("** * * * *", "'**' is no number"),
        ("1-2-3 * * * *", "'1-2-3' is no number"),
        ("*/15/2 * * * *", "'*/15/2' is no number"),
        ("* * * * SAT-SUN", "the range 'SAT-SUN' of the day of the week (0-7 or SUN-SAT) runs backwards"),
        ("* * * * FRI-MON", "the range 'FRI-MON' of the day of the week (0-7 or SUN-SAT) runs backwards"),
        ("JAN * * * *", "'JAN' is outside the minute (0-59)"),
        ("* * MON * *", "'MON' is outside the day of the month (1-31)"),
        ("* * * MON *", "'MON' is outside the month (1-12 or JAN-DEC)"),
        ("* * * JANUARY *", "'JANUARY' is outside the month"),
        ("* * ? * *", "'?' is no number"),
        ("* * L * *", "'L' is outside the day of the month"),
        ("* * 15W * *", "'15W' is outside the day of the month"),
        ("* * * * 5#2", "'5#2' is no number"),
        ("* * * * 5L", "'5L' is outside the day of the week"),
        ("H * * * *", "'H' is outside the minute"),
        ("R * * * *", "'R' is outside the minute"),
        ("@reboot", "the macros are @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly"),
        ("@every 5m", "for a period, use every()"),
        ("@daily x", "the macros are "),
        ("@", "the macros are "),
        (
            "0 0 30 2 *",
            "it never comes round: day of the month 30, month 2, day of the week * meet on no day from 2024 to 2032",
        ),
        (
            "0 0 31 2 *",
            "it never comes round: day of the month 31, month 2, day of the week * meet on no day from 2024 to 2032",
        ),
        (
            "0 0 31 4,6,9,11 *",
            "it never comes round: day of the month 31, month 4,6,9,11, day of the week * meet on no day",
        ),
        ("0 0 30 2 */2", "day of the month 30, month 2, day of the week */2 meet on no day"),
        ("*/" + "9" * 5000 + " * * * *", "integer string conversion"),
    ],
)
def test_what_is_no_expression_is_refused_with_the_field_and_its_range(expression: str, complaint: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        cron(expression)
    assert str(caught.value).startswith(f"cron expression {expression!r}: ")
    assert complaint in str(caught.value)


def any_field(rng: random.Random, low: int, high: int) -> str:
    first, last = sorted(rng.sample(range(low, high + 1), 2))
    step = rng.randint(1, 9)
    texts = (f"{first}", f"{first}-{last}", f"{first}-{last}/{step}", f"*/{step}", f"{first}/{step}", "*")
    return ",".join(rng.sample(texts, rng.choice((1, 1, 2))))


def any_weekdays(rng: random.Random) -> str:
    """Without an open range such as `1/3`: croniter ends it at Saturday, and we at the Sunday that is 7."""
    return ",".join(part for part in any_field(rng, 0, 6).split(",") if part[1:2] != "/" or part[0] == "*") or "*"


def test_fields_expand_as_croniter_expands_them() -> None:
    rng = random.Random(5)
    whole = (range(60), range(24), range(1, 32), range(1, 13), range(7))
    for _ in range(500):
        texts = [any_field(rng, *bounds) for bounds in ((0, 59), (0, 23), (1, 28), (1, 12))]
        expression = " ".join([*texts, any_weekdays(rng)])
        try:
            ours = parse(expression)
        except ScheduleError:  # it never comes round
            continue
        theirs, _nth = croniter.expand(expression)
        minute, hour, days, months, weekdays = (
            frozenset(every if "*" in found else (int(number) for number in found))
            for found, every in zip(theirs, whole, strict=True)
        )
        assert set(ours.times) == {time(h, m) for h, m in product(hour, minute)}, expression
        assert (ours.days, ours.months) == (days, months), expression
        assert ours.weekdays == {number or 7 for number in weekdays}, expression


@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris", "America/New_York", "Asia/Kolkata"])
def test_times_agree_with_cronsim_away_from_repeated_hours(zone: str) -> None:
    rng = random.Random(zone)
    for _ in range(50):
        expression = f"{any_field(rng, 0, 59)} {any_field(rng, 4, 23)} {rng.choice(('*', '1', '*/3', '31'))} * "
        expression += rng.choice(("*", "1-5", "*/2", "7", "MON"))
        local = datetime(2026, 1, 1, rng.randint(4, 23), rng.randint(0, 59), tzinfo=ZoneInfo(zone))
        after = (local + rng.randrange(400) * timedelta(days=1)).astimezone(UTC)
        theirs = CronSim(expression, after.astimezone(ZoneInfo(zone)))
        for _ in range(20):
            found = cron(expression, zone).next(after)
            assert found == next(theirs).astimezone(UTC), (expression, after)
            assert found is not None
            after = found


def test_a_pattern_is_a_value() -> None:
    assert parse("0 0 * * *") == Pattern((time(0),), EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY, False, True)
    assert hash(parse("@daily")) == hash(parse("@midnight"))

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from fastqueue.errors import OptionError, ScheduleError
from fastqueue.schedule import Cron, Schedule, cron, every


def at(text: str) -> datetime:
    """A moment, in UTC unless the text ends with an offset."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def runs(when: Schedule, after: datetime) -> Iterator[datetime]:
    """Each time that a schedule comes round after a moment, checked to go forward and to be in UTC."""
    while (found := when.next(after)) is not None:
        assert found > after
        assert found.tzinfo is UTC
        yield found
        after = found


def first(count: int, when: Schedule, after: datetime) -> list[datetime]:
    return [found for found, _ in zip(runs(when, after), range(count), strict=False)]


# every


@pytest.mark.parametrize(
    ("period", "after", "expected"),
    [
        (timedelta(hours=1), "2026-09-26 10:20", "2026-09-26 11:00"),
        (timedelta(hours=1), "2026-09-26 11:00", "2026-09-26 12:00"),
        (timedelta(minutes=15), "2026-09-26 10:07:30", "2026-09-26 10:15"),
        (timedelta(hours=24), "2026-09-26 10:00", "2026-09-27 00:00"),
        (timedelta(days=7), "2026-09-26 10:00", "2026-09-28 00:00"),
        (timedelta(hours=7), "2026-09-26 10:00", "2026-09-26 13:00"),
        (timedelta(minutes=7), "2026-09-26 10:00", "2026-09-26 10:05"),
        (timedelta(days=30), "2026-09-26 10:00", "2026-10-02 00:00"),
        (0.25, "2026-09-26 10:00:00.100", "2026-09-26 10:00:00.250"),
        (0.001, "2026-09-26 10:00:00.000999", "2026-09-26 10:00:00.001"),
        (0.1, "2026-09-26 10:00:00.299999", "2026-09-26 10:00:00.300"),
        (60, "2026-09-26 10:59:59.999999", "2026-09-26 11:00"),
        (3600, "2026-09-26 17:20+07", "2026-09-26 11:00"),
        (60, "0001-01-01 00:00", "0001-01-01 00:01"),
    ],
)
def test_every_comes_at_the_multiples_of_its_period(period: float | timedelta, after: str, expected: str) -> None:
    found = every(period).next(at(after))
    assert found == at(expected)
    assert found is not None
    assert found.tzinfo is UTC


def test_every_keeps_to_its_grid_however_long_it_is_asked() -> None:
    found = first(5000, every(0.7), at("2026-09-26 10:00:00.123"))
    steps = {later - earlier for earlier, later in pairwise(found)}
    assert steps == {timedelta(milliseconds=700)}


def test_every_never_comes_again_after_the_last_year() -> None:
    assert every(60).next(datetime.max.replace(tzinfo=UTC)) is None
    assert every(timedelta(days=3_652_000)).next(at("9999-12-01 00:00")) is None


@pytest.mark.parametrize(
    "period",
    [
        0,
        -1,
        0.0,
        0.0004,
        1 / 3,
        1e300,
        float("nan"),
        float("inf"),
        float("-inf"),
        True,
        timedelta(0),
        timedelta(seconds=-1),
        timedelta(microseconds=999),
        timedelta(microseconds=1500),
        "5m",
        None,
    ],
)
def test_every_refuses_what_is_no_whole_number_of_milliseconds(period: Any) -> None:
    with pytest.raises(OptionError, match=r"^every\(.*\): a period is "):
        every(period)


@pytest.mark.parametrize(
    ("period", "text", "code"),
    [
        (900, "every 15 minutes", "every(900)"),
        (60, "every minute", "every(60)"),
        (timedelta(days=7), "every 7 days", "every(604800)"),
        (90, "every 90 seconds", "every(90)"),
        (1.5, "every 1500 milliseconds", "every(datetime.timedelta(seconds=1, microseconds=500000))"),
    ],
)
def test_every_reads_as_it_was_written(period: float | timedelta, text: str, code: str) -> None:
    assert str(every(period)) == text
    assert repr(every(period)) == code


# cron in UTC


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("0 2 * * *", "2026-09-26 10:00", "2026-09-27 02:00"),
        ("0 2 * * *", "2026-09-27 01:59:59", "2026-09-27 02:00"),
        ("0 2 * * *", "2026-09-27 02:00", "2026-09-28 02:00"),
        ("0 2 * * *", "2026-09-27 01:59:59.999999", "2026-09-27 02:00"),
        ("0 2 * * *", "2026-09-27 02:00:00.000001", "2026-09-28 02:00"),
        ("*/15 * * * *", "2026-09-26 10:07", "2026-09-26 10:15"),
        ("*/15 * * * *", "2026-09-26 10:59", "2026-09-26 11:00"),
        ("5/15 * * * *", "2026-09-26 10:50", "2026-09-26 11:05"),
        ("0 9 * * MON-FRI", "2026-09-26 12:00", "2026-09-28 09:00"),
        ("0 12 * * 7", "2026-09-26 12:00", "2026-09-27 12:00"),
        ("0 0 1 * *", "2026-09-26 10:00", "2026-10-01 00:00"),
        ("0 0 29 2 *", "2026-09-26 10:00", "2028-02-29 00:00"),
        ("0 0 * jan,Jul *", "2026-09-26 10:00", "2027-01-01 00:00"),
        ("59 23 31 12 *", "2026-12-31 23:59", "2027-12-31 23:59"),
        ("30 8-10/2 * * *", "2026-09-26 08:30", "2026-09-26 10:30"),
        ("0 0 13 * 5", "2026-09-28 00:00", "2026-10-02 00:00"),
        ("0 0 */2 * 5", "2026-09-28 00:00", "2026-10-09 00:00"),
        ("@hourly", "2026-09-26 10:30", "2026-09-26 11:00"),
        ("@daily", "2026-09-26 10:30", "2026-09-27 00:00"),
        ("@midnight", "2026-09-26 10:30", "2026-09-27 00:00"),
        ("@weekly", "2026-09-26 10:30", "2026-09-27 00:00"),
        ("@monthly", "2026-09-26 10:30", "2026-10-01 00:00"),
        ("@yearly", "2026-09-26 10:30", "2027-01-01 00:00"),
        ("@annually", "2026-09-26 10:30", "2027-01-01 00:00"),
        ("0 2 * * *", "2026-09-26 17:00+07", "2026-09-27 02:00"),
        ("0 12 29 2 *", "2096-03-01 00:00", "2104-02-29 12:00"),
        ("0 12 29 2 *", "2096-02-29 12:00", "2104-02-29 12:00"),
    ],
)
def test_cron_finds_the_next_time_in_utc(expression: str, after: str, expected: str) -> None:
    found = cron(expression).next(at(after))
    assert found == at(expected)
    assert found is not None
    assert found.tzinfo is UTC


@pytest.mark.parametrize("expression", [None, 5, b"0 2 * * *", ["0", "2", "*", "*", "*"]])
def test_cron_of_anything_but_a_text_is_refused(expression: Any) -> None:
    with pytest.raises(ScheduleError, match="it takes five fields as a text"):
        cron(expression)


def test_cron_stops_looking_after_eight_years() -> None:
    # The leap days of 2036, 2040 and 2044 fall on days that the expression leaves out.
    assert cron("0 0 29 2 */2").next(at("2032-03-01 00:00")) is None
    assert cron("0 0 29 2 */2").next(at("2040-01-01 00:00")) == at("2048-02-29 00:00")


def test_cron_answers_none_where_the_calendar_ends() -> None:
    assert first(2, cron("0 0 * * *", "Asia/Tokyo"), at("9997-12-30 00:00")) == [at("9997-12-30 15:00")]
    assert cron("0 0 * * *", "America/New_York").next(datetime.max.replace(tzinfo=UTC)) is None


# cron in a zone


@pytest.mark.parametrize(
    ("zone", "expression", "after", "expected"),
    [
        ("Europe/Paris", "0 9 * * MON-FRI", "2026-09-26 12:00+02", "2026-09-28 09:00+02"),
        ("America/New_York", "30 2 * * *", "2026-09-26 12:00-04", "2026-09-27 02:30-04"),
        ("Asia/Kolkata", "0 9 * * *", "2026-09-26 00:00+05:30", "2026-09-26 09:00+05:30"),
        ("UTC", "0 2 * * *", "2026-09-26 10:00", "2026-09-27 02:00"),
        # Paris goes from 2:00 to 3:00 on 2027-03-28, and from 3:00 to 2:00 on 2026-10-25
        ("Europe/Paris", "30 2 * * *", "2027-03-28 00:00+01", "2027-03-28 03:00+02"),
        ("Europe/Paris", "30 2 * * *", "2027-03-28 03:00+02", "2027-03-29 02:30+02"),
        ("Europe/Paris", "0,30 2 * * *", "2027-03-28 00:00+01", "2027-03-28 03:00+02"),
        ("Europe/Paris", "0,30 2 * * *", "2027-03-28 03:00+02", "2027-03-29 02:00+02"),
        ("Europe/Paris", "0 3 * * *", "2027-03-28 01:59+01", "2027-03-28 03:00+02"),
        ("Europe/Paris", "30 2 * * *", "2026-10-25 02:00+02", "2026-10-25 02:30+02"),
        ("Europe/Paris", "30 2 * * *", "2026-10-25 02:30+02", "2026-10-26 02:30+01"),
        ("Europe/Paris", "30 2 * * *", "2026-10-25 02:10+01", "2026-10-26 02:30+01"),
        ("America/New_York", "30 2 * * *", "2027-03-14 01:00-05", "2027-03-14 03:00-04"),
        ("America/New_York", "30 1 * * *", "2026-11-01 01:00-04", "2026-11-01 01:30-04"),
        ("America/New_York", "30 1 * * *", "2026-11-01 01:30-04", "2026-11-02 01:30-05"),
        # Lord Howe's clock goes by half an hour
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-04 01:30+10:30", "2026-10-04 02:30+11"),
        ("Australia/Lord_Howe", "45 2 * * *", "2026-10-04 01:30+10:30", "2026-10-04 02:45+11"),
        ("Australia/Lord_Howe", "45 1 * * *", "2027-04-04 01:00+11", "2027-04-04 01:45+11"),
        ("Australia/Lord_Howe", "45 1 * * *", "2027-04-04 01:45+11", "2027-04-05 01:45+10:30"),
        # Havana's at midnight
        ("America/Havana", "@daily", "2027-03-13 01:00-05", "2027-03-14 01:00-04"),
        ("America/Havana", "@daily", "2026-10-31 01:00-04", "2026-11-01 00:00-04"),
        ("America/Havana", "@daily", "2026-11-01 00:00-04", "2026-11-02 00:00-05"),
        # Times with a star
        ("Europe/Paris", "*/15 * * * *", "2027-03-28 01:50+01", "2027-03-28 03:00+02"),
        ("Europe/Paris", "@hourly", "2027-03-28 01:00+01", "2027-03-28 03:00+02"),
        ("Europe/Paris", "*/15 * * * *", "2026-10-25 02:45+02", "2026-10-25 02:00+01"),
        ("Europe/Paris", "30 * * * *", "2026-10-25 02:30+02", "2026-10-25 02:30+01"),
        ("Europe/Paris", "@hourly", "2026-10-25 02:00+02", "2026-10-25 02:00+01"),
        ("Australia/Lord_Howe", "*/15 * * * *", "2027-04-04 01:45+11", "2027-04-04 01:30+10:30"),
        # What is fixed: only a star at the very start of the minute or the hour makes a beat
        ("Europe/Paris", "0-59 2 * * *", "2027-03-28 00:00+01", "2027-03-28 03:00+02"),
        ("Europe/Paris", "0-59 2 * * *", "2027-03-28 03:00+02", "2027-03-29 02:00+02"),
        ("Europe/Paris", "*/30 2 * * *", "2027-03-28 00:00+01", "2027-03-29 02:00+02"),
        ("Europe/Paris", "*/30 2 * * *", "2026-10-25 02:30+02", "2026-10-25 02:00+01"),
        ("Europe/Paris", "0 */2 * * *", "2027-03-28 00:00+01", "2027-03-28 04:00+02"),
        ("Europe/Paris", "0,* 2 * * *", "2027-03-28 00:00+01", "2027-03-28 03:00+02"),
        ("Europe/Paris", "0,30 2,3 * * *", "2027-03-28 00:00+01", "2027-03-28 03:00+02"),
        ("Europe/Paris", "0,30 2,3 * * *", "2027-03-28 03:00+02", "2027-03-28 03:30+02"),
        ("Europe/Paris", "30 2 28 3 *", "2026-12-01 00:00+01", "2027-03-28 03:00+02"),
        ("Europe/Paris", "30 2 * * SUN", "2027-03-27 12:00+01", "2027-03-28 03:00+02"),
        ("Europe/Paris", "30 2 * * MON", "2027-03-27 12:00+01", "2027-03-29 02:30+02"),
        ("Europe/Paris", "0,30 2 * * *", "2026-10-25 02:30+02", "2026-10-26 02:00+01"),
        ("Europe/Paris", "0 3 * * *", "2026-10-25 02:59+01", "2026-10-25 03:00+01"),
        ("America/Havana", "30 0 * * *", "2027-03-13 12:00-05", "2027-03-14 01:00-04"),
        ("America/Havana", "@hourly", "2026-11-01 00:00-04", "2026-11-01 00:00-05"),
        ("Asia/Kathmandu", "0 9 * * *", "2026-09-26 00:00+05:45", "2026-09-26 09:00+05:45"),
        # Apia left out the whole of 2011-12-30
        ("Pacific/Apia", "0 9 * * *", "2011-12-29 10:00-10", "2011-12-31 00:00+14"),
        ("Pacific/Apia", "0 9 * * *", "2011-12-31 00:00+14", "2011-12-31 09:00+14"),
        ("Pacific/Apia", "0 * * * *", "2011-12-29 23:00-10", "2011-12-31 00:00+14"),
        # A yearly time is found over many changes, in a gap as well
        ("Europe/Paris", "0 0 29 2 *", "2024-02-29 00:00+01", "2028-02-29 00:00+01"),
        ("Europe/Paris", "*/30 0 29 2 *", "2024-02-29 00:30+01", "2028-02-29 00:00+01"),
    ],
)
def test_cron_keeps_to_the_clock_of_its_zone(zone: str, expression: str, after: str, expected: str) -> None:
    assert cron(expression, tz=zone).next(at(after)) == at(expected)


@pytest.mark.parametrize("zone", ["Europe/Paris", "America/New_York", "Australia/Lord_Howe", "America/Havana"])
@pytest.mark.parametrize("expression", ["30 2 * * *", "@daily", "45 1 * * *"])
def test_a_fixed_time_comes_once_on_each_local_day(zone: str, expression: str) -> None:
    found = first(800, cron(expression, zone), at("2026-09-01 00:00"))
    assert len({moment.astimezone(ZoneInfo(zone)).date() for moment in found}) == 800


@pytest.mark.parametrize("zone", ["Europe/Paris", "America/New_York", "America/Havana"])
def test_a_quarter_hourly_beat_never_misses_or_doubles(zone: str) -> None:
    found = first(38_400, cron("*/15 * * * *", zone), at("2026-09-01 00:00"))
    start = found[0]
    assert found == [start + number * timedelta(minutes=15) for number in range(38_400)]


# what other schedulers got wrong


@pytest.mark.parametrize(
    ("zone", "expression", "after", "expected"),
    [
        ("America/Los_Angeles", "0 2 * * *", "2014-03-09 09:00", "03-09 10:00, 03-10 09:00, 03-11 09:00"),
        ("Europe/Berlin", "30 2 * * *", "2026-03-28 12:00", "03-29 01:00, 03-30 00:30, 03-31 00:30"),
        ("America/Los_Angeles", "0 1 * * *", "2014-11-02 07:00", "11-02 08:00, 11-03 09:00, 11-04 09:00"),
        ("America/Los_Angeles", "0 * * * *", "2026-11-01 08:00", "11-01 09:00, 11-01 10:00, 11-01 11:00"),
        ("Europe/London", "*/15 * * * *", "2025-10-26 00:50", "10-26 01:00, 10-26 01:15, 10-26 01:30"),
        ("America/New_York", "30 1 * * *", "2026-11-01 06:00", "11-02 06:30, 11-03 06:30, 11-04 06:30"),
        ("America/New_York", "* * * * *", "2026-11-01 06:30:15", "11-01 06:31, 11-01 06:32, 11-01 06:33"),
        ("Europe/Berlin", "30 2 * * *", "2026-10-25 01:00", "10-26 01:30, 10-27 01:30, 10-28 01:30"),
        ("Europe/Berlin", "0 12 * * 0", "2022-03-24 11:00", "03-27 10:00, 04-03 10:00, 04-10 10:00"),
        ("UTC", "0 0 */10 * *", "2021-02-10 00:00", "02-11 00:00, 02-21 00:00, 03-01 00:00"),
        ("UTC", "48 14 31 jun sun", "2026-05-31 00:00", "06-07 14:48, 06-14 14:48, 06-21 14:48"),
        ("UTC", "0 0 31 2 1-5", "2026-01-30 00:00", "02-02 00:00, 02-03 00:00, 02-04 00:00"),
    ],
)
def test_cron_is_right_where_others_went_wrong(zone: str, expression: str, after: str, expected: str) -> None:
    found = first(3, cron(expression, zone), at(after))
    assert found == [at(f"{after[:4]}-{text}") for text in expected.split(", ")]


@pytest.mark.parametrize(
    ("first_minute", "last_minute", "count"),
    [("2025-11-02 05:00", "2025-11-03 05:59", 1500), ("2026-03-08 06:00", "2026-03-09 04:59", 1380)],
)
def test_each_minute_of_a_longer_and_a_shorter_day_comes(first_minute: str, last_minute: str, count: int) -> None:
    found = first(count, cron("* * * * *", "America/Chicago"), at(first_minute) - timedelta(minutes=1))
    assert (found[0], found[-1]) == (at(first_minute), at(last_minute))


def test_a_leap_day_is_a_schedule() -> None:
    found = first(3, cron("0 12 29 2 *"), at("2026-11-30 00:00"))
    assert found == [at("2028-02-29 12:00"), at("2032-02-29 12:00"), at("2036-02-29 12:00")]


@pytest.mark.parametrize("expression", ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *"])
def test_a_day_that_never_comes_is_refused_when_it_is_declared(expression: str) -> None:
    with pytest.raises(ScheduleError, match=r"never comes round: day of the month 3"):
        cron(expression)


# both


@pytest.mark.parametrize("when", [every(60), cron("0 2 * * *"), cron("0 2 * * *", "Europe/Paris")])
def test_only_the_instant_counts_and_not_the_zone_it_is_told_in(when: Schedule) -> None:
    instant = at("2026-10-25 00:30")
    tellings: list[datetime] = [instant.astimezone(zone) for zone in (ZoneInfo("Europe/Paris"), ZoneInfo("Asia/Tokyo"))]
    tellings.append(instant.astimezone(timezone(timedelta(hours=-9, minutes=-30))))
    assert {when.next(telling) for telling in tellings} == {when.next(instant)}


def test_the_second_showing_of_an_hour_is_told_from_the_first() -> None:
    shown = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Paris"))
    hourly = cron("@hourly", "Europe/Paris")
    assert hourly.next(shown) == at("2026-10-25 01:00")
    assert hourly.next(shown.replace(fold=1)) == at("2026-10-25 02:00")


@pytest.mark.parametrize("when", [every(60), cron("0 2 * * *")])
def test_a_naive_moment_is_refused_with_the_remedy(when: Schedule) -> None:
    with pytest.raises(OptionError, match=r"has no zone: pass an aware datetime, such as datetime\.now\(UTC\)"):
        when.next(datetime(2026, 9, 26))


def test_schedules_are_values() -> None:
    assert every(60) == every(timedelta(minutes=1)) == every(60.0) != every(61)
    assert cron("0 2 * * *") == cron(" 0  2 * *\t* ", tz="UTC") != cron("0 2 * * *", "Europe/Paris")
    assert len({every(60), every(60), cron("@daily"), cron("@daily"), cron("@hourly")}) == 3
    for when in (every(60), cron("0 2 * * *"), cron("0 2 * * *", "Europe/Paris")):
        for twin in (copy.deepcopy(when), pickle.loads(pickle.dumps(when))):
            assert twin == when
            assert twin.next(at("2026-09-26 10:00")) == when.next(at("2026-09-26 10:00"))


def test_schedules_do_not_change() -> None:
    with pytest.raises(AttributeError):
        every(60).period = timedelta(1)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        cron("@daily").tz = "Europe/Paris"  # type: ignore[misc]


def test_a_cron_tells_what_it_was_made_of() -> None:
    nightly: Cron = cron(" 0 2  * * MON-FRI ", "Europe/Paris")
    assert (nightly.expression, nightly.tz) == ("0 2 * * MON-FRI", "Europe/Paris")
    assert str(nightly) == "0 2 * * MON-FRI (Europe/Paris)"
    assert repr(nightly) == "cron('0 2 * * MON-FRI', tz='Europe/Paris')"
    assert every(900).period == timedelta(minutes=15)

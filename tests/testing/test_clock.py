from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest

from fastqueue.errors import OptionError
from fastqueue.testing import FakeClock


def test_the_clock_stands_until_it_is_moved() -> None:
    clock = FakeClock()
    assert clock() == clock() == datetime(2026, 9, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("by", [90, 90.0, timedelta(minutes=1, seconds=30)])
def test_the_clock_is_moved_by_seconds_or_a_timedelta(by: float | timedelta) -> None:
    clock = FakeClock()
    clock.move(by)
    assert clock() == datetime(2026, 9, 1, 12, 1, 30, tzinfo=UTC)


def test_the_clock_can_be_moved_back() -> None:
    clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
    clock.move(-0.001)
    assert clock() == datetime(2025, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)


def test_the_clock_shows_utc_whatever_it_was_set_to() -> None:
    clock = FakeClock()
    clock.set(datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))))
    assert clock() == datetime(2026, 1, 1, tzinfo=UTC)
    assert clock().tzinfo is UTC


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(OptionError, match="no time zone"):
        FakeClock(datetime(2026, 1, 1))
    clock = FakeClock()
    with pytest.raises(OptionError, match="no time zone"):
        clock.set(datetime(2026, 1, 1))


def test_the_clock_and_the_kit_without_pytest_need_no_pytest() -> None:
    code = "import sys; from fastqueue.testing import FakeClock, exercise; print('pytest' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"

"""The queue's clock, on a machine whose own may be wrong and may be set at any moment."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from fastqueue.clock import Clock
from fastqueue.job import Moment
from fastqueue.testing import FakeClock

HOUR = 3_600_000
THEIRS = 1_790_000_000_000


async def theirs() -> Moment:
    return THEIRS


@pytest.fixture
def set_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the machine's clock forward by milliseconds, or back."""
    read, ahead = time.time_ns, 0

    def set_by(ms: int) -> None:
        nonlocal ahead
        ahead += ms * 1_000_000

    monkeypatch.setattr(time, "time_ns", lambda: read() + ahead)
    return set_by


async def test_it_goes_by_the_machine_until_another_clock_is_asked_and_by_that_one_then() -> None:
    clock = Clock()
    assert abs(clock.now() - time.time() * 1000) < 60_000
    assert clock.wrong_ms == 0

    await clock.follow(theirs)

    assert 0 <= clock.now() - THEIRS < 60_000
    assert abs(clock.wrong_ms - (time.time() * 1000 - THEIRS)) < 60_000


@pytest.mark.parametrize("step", [HOUR, -HOUR])
async def test_a_step_of_the_machine_s_clock_is_noticed_and_moves_nothing(
    step: int, set_by: Callable[[int], None]
) -> None:
    clock = Clock()
    await clock.follow(theirs)
    assert not clock.has_stepped

    set_by(step)
    assert clock.has_stepped
    assert 0 <= clock.now() - THEIRS < 60_000

    await clock.follow(theirs)
    assert not clock.has_stepped
    assert 0 <= clock.now() - THEIRS < 60_000


async def test_a_step_while_the_other_clock_is_asked_moves_nothing(set_by: Callable[[int], None]) -> None:
    async def stepping() -> Moment:
        set_by(HOUR)
        return THEIRS

    clock = Clock()
    await clock.follow(stepping)

    assert 0 <= clock.now() - THEIRS < 60_000


async def test_the_app_s_own_clock_follows_none() -> None:
    own = FakeClock()
    clock = Clock(own)
    await clock.follow(theirs)

    assert clock.now() == own().timestamp() * 1000
    assert not clock.has_stepped

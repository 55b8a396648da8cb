from __future__ import annotations

from datetime import timedelta

import pytest

from fastqueue.backoff import Backoff, constant, exponential, parse_backoff, quartic, spec
from fastqueue.errors import OptionError

DAY = 86_400.0
DRAWS = 500


@pytest.mark.parametrize("attempt", [1, 2, 3, 9, 16])
def test_the_default_waits_the_fourth_power_of_the_attempt_and_up_to_a_tenth_more(attempt: int) -> None:
    waits = [quartic()(attempt) for _ in range(DRAWS)]
    assert min(waits) >= attempt**4
    assert max(waits) <= attempt**4 * 1.1
    assert len(set(waits)) > DRAWS // 2


def test_the_default_waits_never_more_than_a_day() -> None:
    assert {quartic()(attempt) for attempt in (18, 19, 20, 1000, 10**6) for _ in range(DRAWS)} == {DAY}
    at_17 = [quartic()(17) for _ in range(DRAWS)]
    assert min(at_17) >= 17**4
    assert max(at_17) == DAY


def test_the_nine_waits_of_the_default_are_about_four_hours() -> None:
    assert 15_333 <= sum(quartic()(attempt) for attempt in range(1, 10)) <= 15_333 * 1.1


def test_an_exponential_wait_doubles_up_to_its_cap() -> None:
    wait = exponential(0.5, timedelta(seconds=3))
    assert [wait(attempt) for attempt in (1, 2, 3, 4, 5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert wait(10**9) == 3.0


def test_a_constant_wait_is_the_same_after_each_attempt() -> None:
    wait = constant(timedelta(minutes=1))
    assert [wait(1), wait(50)] == [60.0, 60.0]
    assert constant(0)(1) == 0


@pytest.mark.parametrize(("base", "cap"), [(0, 1), (-1, 1), (2, 1), (1, float("inf")), (float("nan"), 1)])
def test_an_exponential_that_cannot_be_is_refused(base: float, cap: float) -> None:
    with pytest.raises(OptionError, match=r"base|cap"):
        exponential(base, cap)


@pytest.mark.parametrize("wait", [-1, timedelta(seconds=-1), float("nan"), float("inf"), True, "3"])
def test_a_constant_that_cannot_be_is_refused(wait: float) -> None:
    with pytest.raises(OptionError, match="wait="):
        constant(wait)


@pytest.mark.parametrize(
    "backoff", [quartic(), exponential(), exponential(0.001, 1e7), exponential(1e-07, 1e30), constant(0), constant(2.5)]
)
def test_a_backoff_comes_back_from_the_text_it_is_kept_as(backoff: Backoff) -> None:
    assert parse_backoff(spec(backoff)) == backoff


def test_a_function_of_the_app_s_cannot_be_kept_with_a_job() -> None:
    with pytest.raises(OptionError, match="set the function on the kind"):
        spec(lambda attempt: attempt)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "None",
        "quartic",
        "quartic(1)",
        "exponential(1)",
        "exponential(1, 2, 3)",
        "constant()",
        "constant(-)",
        "constant(1 2)",
        "constant(1e)",
        "constant(1.2.3)",
        "fibonacci(1)",
        "constant(nan)",
        "__import__(1)",
    ],
)
def test_text_that_is_no_backoff_is_none(text: str) -> None:
    assert parse_backoff(text) is None

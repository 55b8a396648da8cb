"""How long a job waits after a failed attempt before it runs again."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from fastqueue.errors import OptionError
from fastqueue.settings import Seconds, as_seconds

__all__ = [
    "Backoff",
    "Constant",
    "Exponential",
    "Quartic",
    "constant",
    "exponential",
    "parse_backoff",
    "quartic",
    "spec",
]

Backoff: TypeAlias = Callable[[int], Seconds]
"""The wait after the attempt that has just failed, 1 for the first; 0 or less: at once."""

_DAY = 86_400.0
_SPEC = re.compile(r"(?P<name>[a-z]+)\((?P<numbers>[0-9.e+, -]*)\)")


@dataclass(frozen=True, slots=True)
class Quartic:
    """attempt⁴ seconds and up to a tenth more at random, at most a day."""

    def __call__(self, attempt: int) -> float:
        wait = float(min(attempt, 19) ** 4)
        return min(wait + random.uniform(0, wait / 10), _DAY)

    def __str__(self) -> str:
        return "quartic()"


@dataclass(frozen=True, slots=True)
class Exponential:
    """base · 2^(attempt-1) seconds, at most `cap`."""

    base: float
    cap: float

    def __call__(self, attempt: int) -> float:
        return min(math.ldexp(self.base, min(attempt - 1, 64)), self.cap)

    def __str__(self) -> str:
        return f"exponential({self.base!r}, {self.cap!r})"


@dataclass(frozen=True, slots=True)
class Constant:
    """The same wait, in seconds, after each attempt."""

    wait: float

    def __call__(self, attempt: int) -> float:
        return self.wait

    def __str__(self) -> str:
        return f"constant({self.wait!r})"


def quartic() -> Quartic:
    """The default: attempt⁴ seconds, and up to a tenth more at random so that jobs that failed together part.

    1 s, 16 s, 81 s, 4 min, 10 min, 22 min, 40 min, 68 min, 1.8 h: the tenth attempt is about four hours after the
    first. At most 24 h.

    Example:
        >>> 16 <= quartic()(2) <= 17.6
        True
    """
    return Quartic()


def exponential(base: Seconds = 1, cap: Seconds = 3600) -> Exponential:
    """`base` after the first attempt, twice as long after each further one, at most `cap`.

    Args:
        base: Seconds or a timedelta, above 0. Default 1 s.
        cap: Seconds or a timedelta, at least `base`. Default 1 h.

    Raises:
        OptionError: `base` is not above 0, or `cap` is below it.

    Example:
        >>> [exponential(2)(attempt) for attempt in (1, 2, 3, 99)]
        [2.0, 4.0, 8.0, 3600.0]
    """
    first, most = as_seconds("base", base), as_seconds("cap", cap)
    if first <= 0 or most < first:
        raise OptionError(f"exponential({base!r}, {cap!r}): base is above 0, and cap at least base")
    return Exponential(first, most)


def constant(wait: Seconds) -> Constant:
    """The same wait after each attempt.

    Args:
        wait: Seconds or a timedelta; 0: at once.

    Raises:
        OptionError: `wait` is below 0.

    Example:
        >>> constant(30)(7)
        30.0
    """
    return Constant(as_seconds("wait", wait))


def spec(backoff: Backoff) -> str:
    """The text by which a job keeps a backoff of its own.

    Raises:
        OptionError: it is a function of the app's, which cannot be kept with a job.
    """
    if isinstance(backoff, Quartic | Exponential | Constant):
        return str(backoff)
    raise OptionError(
        f"a push keeps its backoff with the job, which {backoff!r} cannot be: "
        "use quartic(), exponential(...) or constant(...), or set the function on the kind"
    )


def parse_backoff(text: str) -> Backoff | None:
    """The backoff that `spec` wrote; None when this version does not know it."""
    found = _SPEC.fullmatch(text)
    if found is None:
        return None
    try:
        numbers = [float(number) for number in found["numbers"].split(",") if number.strip()]
    except ValueError:
        return None
    match found["name"], numbers:
        case "quartic", []:
            return Quartic()
        case "exponential", [base, cap]:
            return Exponential(base, cap)
        case "constant", [wait]:
            return Constant(wait)
        case _:
            return None

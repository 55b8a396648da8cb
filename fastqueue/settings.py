"""Settings at the edge: durations with their unit, counts in their range, URLs, and the names of what may be set."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from datetime import timedelta
from enum import Enum
from typing import Final, TypeAlias, TypeVar
from urllib.parse import SplitResult, urlsplit

from fastqueue.errors import OptionError

__all__ = [
    "UNSET",
    "Seconds",
    "Unset",
    "as_count",
    "as_function",
    "as_list",
    "as_ms",
    "as_seconds",
    "nearest",
    "split_url",
]

T = TypeVar("T")
F = TypeVar("F")

Seconds: TypeAlias = int | float | timedelta
"""A duration at the public edge: seconds as a number, or a timedelta."""


class Unset(Enum):
    """The one value of an option that was not given, where None means something of its own."""

    UNSET = "not given"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET


def as_seconds(what: str, duration: Seconds) -> float:
    """A duration as seconds, at least 0.

    Raises:
        OptionError: it is no number or timedelta, negative, infinite or not a number.
    """
    if isinstance(duration, timedelta):
        duration = duration.total_seconds()
    if isinstance(duration, bool) or not isinstance(duration, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"{what}={duration!r} is no duration; give seconds as a number, or a timedelta")
    if not math.isfinite(duration) or duration < 0:
        raise OptionError(f"{what}={duration!r} is no duration; it takes 0 seconds or more")
    return float(duration)


def as_ms(what: str, duration: Seconds) -> int:
    """A duration in whole milliseconds, rounded up, so that a tiny one is not none."""
    return math.ceil(as_seconds(what, duration) * 1000 - 1e-6)


def as_count(what: str, count: int, *, least: int = 1) -> int:
    """A whole number of at least `least`.

    Raises:
        OptionError: it is not.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < least:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"{what}={count!r}; it takes a whole number of at least {least}")
    return count


def as_list(what: str, given: Iterable[T]) -> list[T]:
    """Several values; one that is not in a list is refused, a text among them.

    Raises:
        OptionError: it is no list, nor anything else to go through.
    """
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"{what}={given!r}; it takes a list: {what}=[{given!r}]")
    return list(given)


def as_function(what: str, given: F) -> F:
    """A function, or None.

    Raises:
        OptionError: it is something that cannot be called.
    """
    if given is not None and not callable(given):
        raise OptionError(f"{what}={given!r}; it takes a function")
    return given


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence with the known name most like an unknown one, or with all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(map(repr, names))}" if names else "none is known yet"


def split_url(what: str, url: str) -> SplitResult:
    """The parts of a URL, which may hold a password; PostgreSQL's may name several hosts, with commas between them.

    Raises:
        OptionError: it cannot be read, or a "#", "/" or "?" of its password ends the host; the message names `what`.
    """
    try:
        parts = urlsplit(url)
        _, at, place = parts.netloc.rpartition("@")
        ports = [host.rpartition("]")[2].partition(":")[2] for host in place.split(",")]
        if any(int(port) > 65535 for port in ports if port) or (
            place and not at and "@" in parts.path + parts.fragment
        ):
            raise ValueError
    except ValueError:
        raise OptionError(
            f"{what} cannot be read: look at its host and port, and write signs such as #, /, ? and @ in a user or "
            "password as %23, %2F, %3F and %40"
        ) from None
    return parts

"""How many connections a server leaves to a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fastqueue.finding import Finding

__all__ = ["Limit", "connections_finding"]


class Limit(NamedTuple):
    """A limit of the server: what it is set by, how many connections it allows, and how many there are now."""

    set_by: str
    allows: int
    used: int


def connections_finding(limits: Sequence[Limit], *, most: int) -> Finding:
    """Whether one more process, whose store opens up to `most` connections, has room under every limit."""
    tightest = min(limits, key=lambda limit: limit.allows - limit.used)
    smallest = min(limits, key=lambda limit: limit.allows)
    if smallest.allows < most:
        return Finding.error(
            "connections",
            f"a process may need {most}, and {smallest.set_by} allows {smallest.allows}",
            f"raise {smallest.set_by}, or give the store a smaller pool_size",
        )
    room = tightest.allows - tightest.used
    text = f"a process may need {most}; {tightest.set_by} allows {tightest.allows}, and {tightest.used} are in use"
    if room < most:
        return Finding.warning(
            "connections",
            f"{text}: there is no room for another process",
            f"raise {tightest.set_by}, give the stores a smaller pool_size, or run fewer processes",
        )
    return Finding("connections", f"{text}: processes that still fit: {room // most}")

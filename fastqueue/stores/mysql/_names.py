"""What names and keys may be: MySQL's indexes take text only up to a length."""

from __future__ import annotations

from collections.abc import Iterable

from fastqueue.errors import OptionError
from fastqueue.job import NewJob

__all__ = ["refuse_long", "refuse_long_names"]

LONGEST = 255
"""Characters of a name or key."""


def refuse_long(what: str, name: str | None) -> None:
    """Refuse a name that is too long for its column; the server would be less clear, or cut it off.

    Raises:
        OptionError: it is longer than 255 characters.
    """
    if name is not None and len(name) > LONGEST:
        raise OptionError(f"the {what} {name[:20]!r}... has {len(name)} characters; MySQL keeps {LONGEST}: shorten it")


def refuse_long_names(jobs: Iterable[NewJob]) -> None:
    """The same for the names and keys of jobs."""
    for job in jobs:
        for what in ("kind", "queue", "unique_key", "alone_key", "schedule"):
            refuse_long(what, getattr(job, what))

"""What a check says about itself: its clause, what a store must have for it, the ways in which it is run."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from fastqueue.store import Keep

__all__ = ["Marks", "Need", "Way", "clause", "clause_id", "marks"]

Need: TypeAlias = (
    Keep | Literal["schedules", "holds", "failed", "joins", "wakes", "throttles", "time", "migrates", "moves"]
)
"""What a push may ask, or the name of a faculty."""

Way: TypeAlias = Literal["tasks", "processes", "short", "long"]
"""Races run in tasks of one process, and again in several processes; random tests have a short and a long form."""

_WAYS: dict[str, tuple[Way, ...]] = {"once": (), "race": ("tasks", "processes"), "random": ("short", "long")}

_NUMBER = re.compile(r"test_([a-z]\d+[a-c]?)_")
_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Marks:
    """What `clause` has noted on a check."""

    needs: tuple[Need, ...] = ()
    ways: tuple[Way, ...] = ()


def clause(*needs: Need, run: Literal["once", "race", "random"] = "once") -> Callable[[_F], _F]:
    """Note what a store must keep or have for a check, and in which ways it is run."""

    def note(check: _F) -> _F:
        check.__dict__["fastqueue_marks"] = Marks(needs, _WAYS[run])
        return check

    return note


def marks(check: Callable[..., Any]) -> Marks:
    """What `clause` noted; nothing when it was not used."""
    noted = getattr(check, "fastqueue_marks", None)
    return noted if isinstance(noted, Marks) else Marks()


def clause_id(name: str) -> str:
    """ "B7" of `test_b7_no_double_claim`; of a check without a number, its words."""
    found = _NUMBER.match(name)
    return found[1][0].upper() + found[1][1:] if found else name.removeprefix("test_").replace("_", " ")

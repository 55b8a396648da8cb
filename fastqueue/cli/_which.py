"""Which failed jobs a command is about: the options that choose them, and how they are read."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from fastqueue.job import Moment, Which

__all__ = ["NewerThan", "OfError", "OfKind", "OfQueue", "OlderThan", "Pace", "which"]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGE = re.compile(r"([0-9]{1,6})([smhdw])")
_PACE = re.compile(r"([0-9]{1,6})/([smhd])")


def _age(text: str) -> int:
    """An age in milliseconds."""
    found = _AGE.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is no age; write a number and s, m, h, d or w, such as 90m or 2d")
    return int(found[1]) * _UNITS[found[2]] * 1000


def _pace(text: str) -> float:
    """A pace in jobs a second."""
    found = _PACE.fullmatch(text)
    if found is None or not int(found[1]):
        raise typer.BadParameter(f"{text!r} is no pace; write jobs per s, m, h or d, such as 5/s or 100/m")
    return int(found[1]) / _UNITS[found[2]]


OfKind = Annotated[str | None, typer.Option("--kind", help="Only of this kind.")]
OfQueue = Annotated[str | None, typer.Option("--queue", help="Only of this queue.")]
OfError = Annotated[str | None, typer.Option("--error", metavar="TEXT", help="Only with this in the error's text.")]
OlderThan = Annotated[
    int | None, typer.Option("--older-than", metavar="AGE", parser=_age, help="Only failed longer ago, such as 2d.")
]
NewerThan = Annotated[
    int | None, typer.Option("--newer-than", metavar="AGE", parser=_age, help="Only failed within, such as 90m.")
]
Pace = Annotated[
    float | None, typer.Option("--pace", metavar="N/s", parser=_pace, help="How many come due in a time: 5/s, 100/m.")
]


def which(
    now: Moment, kind: str | None, queue: str | None, error: str | None, older: int | None, newer: int | None
) -> Which:
    """The failed jobs that the options choose; ages are in milliseconds, counted from now."""
    return Which(
        kind=kind,
        queue=queue,
        error=error,
        since=None if newer is None else now - newer,
        before=None if older is None else now - older,
    )

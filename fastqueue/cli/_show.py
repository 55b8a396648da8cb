"""How answers are shown: a table on a terminal, plain lines elsewhere, or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["AsJSON", "count", "json_list", "listing", "plain", "second"]

AsJSON = Annotated[bool, typer.Option("--json", help="A JSON list of objects, the id first.")]


def plain(text: str) -> str:
    """A text on one line: it may hold what a stranger sent, and a terminal obeys some of it."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape", "surrogatepass").decode() for sign in text
    )


def count(number: int, noun: str) -> str:
    """A number with its noun: "1 job", "2 jobs"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def second(moment: datetime | None) -> str:
    """A moment in UTC, to the second."""
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def json_list(rows: Sequence[Mapping[str, object]]) -> None:
    """Print rows as a JSON list."""
    typer.echo(json.dumps(rows, indent=2))


def listing(rows: Sequence[Mapping[str, object]], *, as_json: bool, none: str) -> None:
    """Print rows that have the same keys; `none` is what is said when there are no rows."""
    if as_json:
        return json_list(rows)
    if not rows:
        return typer.echo(none)
    cells = [["" if value is None else plain(str(value)) for value in row.values()] for row in rows]
    if sys.stdout.isatty():
        table = Table(*rows[0])
        for row in cells:
            table.add_row(*(Text(cell) for cell in row))
        return Console().print(table)
    typer.echo("\t".join(rows[0]))
    for row in cells:
        typer.echo("\t".join(row))
    return None

"""How answers are shown: a table on a terminal, plain lines elsewhere, or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["AsJSON", "count", "json_list", "listing", "plain", "second", "show_jobs", "warn"]

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


def warn(text: str) -> None:
    """Say something beside what was asked for."""
    typer.echo(f"fastqueue: {plain(text)}", err=True)


async def show_jobs(
    jobs: AsyncIterable[Mapping[str, object]], *, limit: int, as_json: bool, none: str, then: str | None = None
) -> None:
    """Print jobs as they come, so that it does not matter how many there are.

    Args:
        jobs: Rows that have the same keys; the last two are shown below the others on a terminal.
        limit: At most so many; 0: all.
        as_json: Whether to print a JSON list.
        none: What is said when there are no jobs.
        then: What is said after them on a terminal.
    """
    show = _as_json if as_json else _as_blocks if sys.stdout.isatty() else _as_lines
    some = _Some(jobs, limit)
    await show(some)
    if as_json:
        return
    if not some.number:
        typer.echo(none)
    elif then is not None and sys.stdout.isatty():
        typer.echo(f"{count(some.number, 'job')}. {then}")
    if some.more:
        warn(f"these are the first {some.number}, and there are more; --limit 0 shows all")


class _Some:
    """The first of some rows, how many they are, and whether there would be more."""

    def __init__(self, rows: AsyncIterable[Mapping[str, object]], limit: int) -> None:
        self._rows = rows
        self._limit = limit
        self.number = 0
        self.more = False

    async def __aiter__(self) -> AsyncIterator[Mapping[str, object]]:
        async for row in self._rows:
            self.more = self.number == self._limit > 0
            if self.more:
                return
            self.number += 1
            yield row


async def _as_json(rows: _Some) -> None:
    async for row in rows:
        text = json.dumps(row, indent=2).replace("\n", "\n  ")
        typer.echo(f"{'[' if rows.number == 1 else ','}\n  {text}", nl=False)
    typer.echo("\n]" if rows.number else "[]")


async def _as_lines(rows: _Some) -> None:
    async for row in rows:
        if rows.number == 1:
            typer.echo("\t".join(row))
        typer.echo("\t".join(_cells(row)))


async def _as_blocks(rows: _Some) -> None:
    async for row in rows:
        *first, payload, error = zip(row, _cells(row), strict=True)
        typer.echo("  ".join(cell if name in ("id", "kind") else f"{name} {cell}" for name, cell in first if cell))
        for name, cell in (payload, error):
            if cell:
                typer.echo(f"    {name:8} {cell}")
        typer.echo()


def _cells(row: Mapping[str, object]) -> list[str]:
    return ["" if value is None else plain(str(value)) for value in row.values()]


def listing(rows: Sequence[Mapping[str, object]], *, as_json: bool, none: str) -> None:
    """Print rows that have the same keys; `none` is what is said when there are no rows."""
    if as_json:
        return json_list(rows)
    if not rows:
        return typer.echo(none)
    cells = [_cells(row) for row in rows]
    if sys.stdout.isatty():
        table = Table(*rows[0])
        for row in cells:
            table.add_row(*(Text(cell) for cell in row))
        return Console().print(table)
    typer.echo("\t".join(rows[0]))
    for row in cells:
        typer.echo("\t".join(row))
    return None

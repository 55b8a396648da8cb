"""`fastqueue move`: all jobs of one store to another."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from fastqueue.cli._app import fail, finished, load_queue
from fastqueue.cli._show import count
from fastqueue.errors import MissingDriver, OptionError
from fastqueue.move import Moved
from fastqueue.move import move as move_jobs
from fastqueue.store import Store
from fastqueue.stores import store_of

__all__ = ["move"]

_PLACE = "A store's URL, or module:queue."


def move(
    source: Annotated[str, typer.Argument(metavar="FROM", help=_PLACE)],
    target: Annotated[str, typer.Argument(metavar="TO", help=_PLACE)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
) -> None:
    """Move all jobs, and where schedules have got to, to another store. Stop the workers on FROM first.

    It may be stopped at any point and run again. Exit status 1: workers hold some jobs, which were left.
    """
    moved = finished(_moved(_store(source), _store(target), dry_run=dry_run))
    would = "would be " if dry_run else ""
    typer.echo(f"{count(moved.jobs, 'job')} and the last runs of {count(moved.schedules, 'schedule')} {would}moved.")
    if moved.held:
        are, them = ("is", "it") if moved.held == 1 else ("are", "them")
        fail(1, f"{count(moved.held, 'job')} {are} held by workers and left: stop those, and run this again for {them}")


async def _moved(source: Store, target: Store, *, dry_run: bool) -> Moved:
    async with AsyncExitStack() as opened:
        for store in (source, target):
            await store.open()
            opened.push_async_callback(store.close)
        planned = await move_jobs(source, target, dry_run=True)
        if dry_run:
            return planned
        with Progress(
            *(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()),
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        ) as shown:
            bar = shown.add_task("", total=planned.jobs)
            return await move_jobs(source, target, progress=lambda jobs: shown.update(bar, completed=jobs))


def _store(where: str) -> Store:
    if "://" not in where:
        return load_queue(where).store
    try:
        return store_of(where)
    except (OptionError, MissingDriver) as error:
        fail(2, str(error))

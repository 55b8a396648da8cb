"""`fastqueue migrate` and `fastqueue sql`: the store's tables."""

from __future__ import annotations

from typing import Annotated

import typer

from fastqueue.cli._app import App, fail, finished, load_queue
from fastqueue.queue import Queue
from fastqueue.store import Migrates

__all__ = ["migrate", "sql"]


def migrate(app: App = None) -> None:
    """Make the store's tables, or bring them up to date."""
    queue = load_queue(app)
    migrates = _migrates(queue)

    async def applied() -> list[int]:
        try:
            return await migrates.migrate()
        finally:
            await queue.close()

    numbers = finished(applied())
    if numbers:
        typer.echo(f"Applied {', '.join(map(str, numbers))}: the tables are at migration {migrates.latest}.")
    else:
        typer.echo(f"Nothing to do: the tables are at migration {migrates.latest}.")


def sql(
    app: App = None,
    since: Annotated[int, typer.Option(min=0, help="Only the migrations after this number.")] = 0,
) -> None:
    """Print the migrations as SQL, for those who run their own. The store is not asked."""
    typer.echo(_migrates(load_queue(app)).sql(since=since), nl=False)


def _migrates(queue: Queue) -> Migrates:
    if queue.store.migrates is None:
        fail(2, f"the {queue.store.name} store has no tables to migrate")
    return queue.store.migrates

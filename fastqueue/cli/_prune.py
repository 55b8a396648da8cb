"""`fastqueue prune`: what every working process does hourly, done now."""

from __future__ import annotations

from typing import Annotated

import typer

from fastqueue.cli._app import App, ask
from fastqueue.cli._show import count
from fastqueue.queue import Queue
from fastqueue.worker.beside import FAILED_KEPT_MS

__all__ = ["prune"]

DAY_MS = 86_400_000


def prune(
    app: App = None,
    days: Annotated[
        float, typer.Option("--failed-before", min=0, metavar="DAYS", help="Forget what failed so many days ago.")
    ] = FAILED_KEPT_MS / DAY_MS,
) -> None:
    """Forget the jobs that failed more than 30 days ago, and what else is over. Working processes do so every hour."""

    async def pruned(queue: Queue) -> int:
        now = queue.clock.now()
        return await queue.store.prune(now, failed_before=now - int(days * DAY_MS))

    typer.echo(f"{count(ask(app, pruned), 'failed job')} forgotten.")

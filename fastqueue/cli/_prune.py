"""`fastqueue prune`: what every working process does hourly, done now."""

from __future__ import annotations

import typer

from fastqueue.cli._app import App, ask
from fastqueue.cli._show import count
from fastqueue.cli._which import OlderThan
from fastqueue.queue import Queue
from fastqueue.worker.beside import FAILED_KEPT_MS

__all__ = ["prune"]


def prune(app: App = None, older_than: OlderThan = None) -> None:
    """Forget the jobs that failed more than 30 days ago, and what else is over. Working processes do so every hour."""
    kept = FAILED_KEPT_MS if older_than is None else older_than

    async def pruned(queue: Queue) -> int:
        now = queue.clock.now()
        return await queue.store.prune(now, failed_before=now - kept)

    typer.echo(f"{count(ask(app, pruned), 'failed job')} forgotten.")

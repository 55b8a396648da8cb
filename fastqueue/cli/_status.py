"""`fastqueue status`: the queue as a whole."""

from __future__ import annotations

from fastqueue.cli._app import App, ask
from fastqueue.cli._show import AsJSON, listing
from fastqueue.queue import Queue

__all__ = ["status"]


def status(app: App = None, as_json: AsJSON = False) -> None:
    """How many jobs of each queue and kind wait, are delayed, run and have failed, and how long the oldest waits.

    Failed jobs are kept for 30 days; each process that works prunes hourly.
    """

    async def look(queue: Queue) -> list[dict[str, object]]:
        now = queue.clock.now()
        return [
            {
                "id": f"{found.queue}/{found.kind}",
                "queue": found.queue,
                "kind": found.kind,
                "waiting": found.waiting,
                "delayed": found.delayed,
                "running": found.running,
                "failed": found.failed,
                "oldest_seconds": None if found.oldest is None else max(now - found.oldest, 0) / 1000,
            }
            for found in sorted(await queue.store.counts(now), key=lambda found: (found.queue, found.kind))
        ]

    listing(ask(app, look), as_json=as_json, none="The queue is empty.")

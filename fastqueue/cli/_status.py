"""`fastqueue status` and `fastqueue check`: the queue as a whole."""

from __future__ import annotations

from typing import Any

import typer

from fastqueue.cli._app import App, ask, jobs_of, load_queue
from fastqueue.cli._show import AsJSON, listing
from fastqueue.errors import Mismatch
from fastqueue.job import StoredJob
from fastqueue.kind import Kind
from fastqueue.queue import Queue

__all__ = ["check", "status"]


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


def check(app: App = None, as_json: AsJSON = False) -> None:
    """Whether the code as it is can read every job that is kept; for use before a deploy. Exit status 1: it cannot."""
    kinds = load_queue(app).kinds

    async def look(queue: Queue) -> list[dict[str, object]]:
        found: dict[tuple[str, str], list[int]] = {}
        async for job in jobs_of(queue):
            if reason := _unfit(job, kinds.get(job.kind)):
                first = found.setdefault((job.kind, reason), [job.id, 0])
                first[1] += 1
        return [
            {"id": id, "kind": kind, "jobs": number, "reason": reason} for (kind, reason), (id, number) in found.items()
        ]

    unfit = ask(app, look)
    listing(unfit, as_json=as_json, none="Every job fits.")
    if unfit:
        raise typer.Exit(1)


def _unfit(job: StoredJob, kind: Kind[Any] | None) -> str | None:
    if kind is None:
        return "the queue has no such kind"
    try:
        kind.codec.decode(job.payload)
    except Mismatch as error:
        return str(error)
    return None

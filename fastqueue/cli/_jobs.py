"""`fastqueue failed` and `jobs`: jobs one by one, and the failed ones by what went wrong."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from fastqueue.cli._app import App, ask, jobs_of
from fastqueue.cli._show import AsJSON, listing, second, show_jobs
from fastqueue.cli._which import NewerThan, OfError, OfKind, OfQueue, OlderThan, which
from fastqueue.failures import each_failed, groups
from fastqueue.job import StoredJob
from fastqueue.queue import Queue

__all__ = ["failed", "jobs"]

State = Literal["waiting", "delayed", "running", "failed"]
AtMost = Annotated[int, typer.Option("--limit", min=0, help="At most so many; 0: all.")]
_AFTER_FAILED = "Run one again: fastqueue retry ID. Delete one: fastqueue forget ID."

Grouped = Annotated[bool, typer.Option("--group", help="One row for each kind and error, with how many they are.")]


def failed(
    app: App = None,
    kind: OfKind = None,
    in_queue: OfQueue = None,
    error: OfError = None,
    older_than: OlderThan = None,
    newer_than: NewerThan = None,
    limit: AtMost = 100,
    group: Grouped = False,
    as_json: AsJSON = False,
) -> None:
    """The jobs that failed for good, the latest first. They are kept for a month."""

    async def grouped(queue: Queue) -> list[dict[str, object]]:
        meant = which(queue.clock.now(), kind, in_queue, error, older_than, newer_than)
        return [
            {
                "id": found.last.id,
                "kind": found.kind,
                "jobs": found.jobs,
                "first": second(found.first.failed_at),
                "last": second(found.last.failed_at),
                "error": found.error,
            }
            for found in (await groups(queue, meant))[: limit or None]
        ]

    async def show(queue: Queue) -> None:
        meant = which(queue.clock.now(), kind, in_queue, error, older_than, newer_than)
        rows = (
            {"id": job.id, "kind": job.kind, "failed": second(job.failed_at), **_content(job)}
            async for job in each_failed(queue.store, meant)
        )
        await show_jobs(rows, limit=limit, as_json=as_json, none="No job has failed.", then=_AFTER_FAILED)

    if group:
        return listing(ask(app, grouped), as_json=as_json, none="No job has failed.")
    return ask(app, show)


def jobs(
    app: App = None,
    state: Annotated[State | None, typer.Option("--state", help="Only those in this state.")] = None,
    kind: OfKind = None,
    in_queue: OfQueue = None,
    after: Annotated[int, typer.Option("--after", min=0, help="Only those with a larger id.")] = 0,
    limit: AtMost = 100,
    as_json: AsJSON = False,
) -> None:
    """The jobs that the store keeps, whatever their state, by id."""

    async def show(queue: Queue) -> None:
        now = queue.clock.now()
        rows = (
            {
                "id": job.id,
                "kind": job.kind,
                "queue": job.queue,
                "state": job.state(now),
                "due": second(job.run_at),
                "failed": second(job.failed_at) or None,
                **_content(job),
            }
            async for job in jobs_of(queue, state=state, kind=kind, in_queue=in_queue, after=after)
        )
        await show_jobs(rows, limit=limit, as_json=as_json, none="There are no such jobs.")

    ask(app, show)


def _content(job: StoredJob) -> dict[str, object]:
    return {
        "attempts": job.attempts,
        "request": job.carried.get("request_id"),
        "payload": job.payload,
        "error": job.error,
    }

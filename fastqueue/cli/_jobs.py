"""`fastqueue failed`, `jobs`, `retry` and `forget`: jobs one by one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Literal

import typer

from fastqueue.cli._app import App, ask, fail, jobs_of
from fastqueue.cli._show import AsJSON, count, listing, second
from fastqueue.job import StoredJob
from fastqueue.queue import Queue
from fastqueue.store import FailedJobs

__all__ = ["failed", "forget", "jobs", "retry"]

State = Literal["waiting", "delayed", "running", "failed"]
OfKind = Annotated[str | None, typer.Option("--kind", help="Only of this kind.")]
AtMost = Annotated[int, typer.Option("--limit", min=1, help="At most so many.")]
Words = Annotated[list[str], typer.Argument(metavar="ID...|all", help="Ids of failed jobs, or the word all.")]

_AT_ONCE = 500
_LARGEST = 2**63 - 1


def failed(app: App = None, kind: OfKind = None, limit: AtMost = 100, as_json: AsJSON = False) -> None:
    """The jobs that failed for good, the latest first."""
    found = ask(app, lambda queue: queue.failed(limit=limit, kind=kind))
    rows = [
        {"id": job.id, "kind": job.kind, "failed": second(job.failed_at), "attempts": job.attempts, **_content(job)}
        for job in found
    ]
    listing(rows, as_json=as_json, none="No job has failed.")


def jobs(
    app: App = None,
    state: Annotated[State | None, typer.Option("--state", help="Only those in this state.")] = None,
    kind: OfKind = None,
    limit: AtMost = 100,
    as_json: AsJSON = False,
) -> None:
    """The jobs that the store keeps, whatever their state, by id."""

    async def look(queue: Queue) -> list[dict[str, object]]:
        now = queue.clock.now()
        found = await queue.store.jobs(state=state, now=now, kind=kind, limit=limit)
        return [
            {
                "id": job.id,
                "kind": job.kind,
                "queue": job.queue,
                "state": job.state(now),
                "due": second(job.run_at),
                "failed": second(job.failed_at) or None,
                "attempts": job.attempts,
                **_content(job),
            }
            for job in found
        ]

    listing(ask(app, look), as_json=as_json, none="There are no such jobs.")


def retry(words: Words, app: App = None) -> None:
    """Put failed jobs back, due now, from their first attempt."""

    def again(queue: Queue, among: FailedJobs, ids: Sequence[int]) -> Awaitable[list[bool]]:
        return among.run_again(ids, at=queue.clock.now())

    _each(app, words, again, "back to run")


def forget(words: Words, app: App = None) -> None:
    """Delete failed jobs."""
    _each(app, words, lambda _, among, ids: among.forget(ids), "forgotten")


def _content(job: StoredJob) -> dict[str, object]:
    return {"request": job.carried.get("request_id"), "payload": job.payload, "error": job.error}


def _each(
    app: str | None,
    words: Sequence[str],
    do: Callable[[Queue, FailedJobs, Sequence[int]], Awaitable[list[bool]]],
    done: str,
) -> None:
    given = None if list(words) == ["all"] else list(dict.fromkeys(map(_id, words)))

    async def through(queue: Queue) -> tuple[int, list[int]]:
        if queue.store.failed is None:
            fail(2, f"the {queue.store.name} store keeps no list of failed jobs")
        ids = [job.id async for job in jobs_of(queue, state="failed")] if given is None else given
        unknown: list[int] = []
        for start in range(0, len(ids), _AT_ONCE):
            part = ids[start : start + _AT_ONCE]
            answers = await do(queue, queue.store.failed, part)
            unknown += [id for id, found in zip(part, answers, strict=True) if not found]
        return len(ids) - len(unknown), unknown

    number, unknown = ask(app, through)
    typer.echo(f"{count(number, 'job')} {done}.")
    if unknown:
        fail(1, f"no failed job has the id {', '.join(map(str, unknown))}")


def _id(word: str) -> int:
    if not (word.isascii() and word.isdigit()) or int(word) > _LARGEST:
        fail(2, f"{word!r} is no id; give ids of failed jobs, or the one word all")
    return int(word)

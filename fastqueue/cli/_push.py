"""`fastqueue push`: one job from the command line."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Annotated, Any

import typer

from fastqueue.cli._app import App, fail, finished, load_queue
from fastqueue.cli._show import warn
from fastqueue.errors import Mismatch, OptionError, ValueRefused
from fastqueue.job import Pushed
from fastqueue.kind import Kind
from fastqueue.queue import Queue
from fastqueue.settings import nearest

__all__ = ["push"]


def push(
    kind: Annotated[str, typer.Argument(help="The kind's name.")],
    value: Annotated[str, typer.Argument(metavar="JSON", help="The value, as JSON; - reads it from the input.")],
    app: App = None,
    delay: Annotated[float | None, typer.Option("--delay", min=0, help="How many seconds until it is due.")] = None,
    at: Annotated[str | None, typer.Option("--at", help="When it is due: 2026-09-01T12:00:00+02:00.")] = None,
    in_queue: Annotated[
        str | None, typer.Option("--queue", help="The queue it waits in; its kind's by default.")
    ] = None,
    attempts: Annotated[
        int | None, typer.Option("--attempts", min=1, help="Runs in all; its kind's by default.")
    ] = None,
) -> None:
    """Push a job, and print its id. What the kind says of unique jobs and limits holds for it."""
    queue = load_queue(app)
    found = queue.kinds.get(kind)
    if found is None:
        fail(2, f"the queue has no kind {kind!r}; {nearest(kind, queue.kinds)}")
    when = None if at is None else _moment(at)
    try:
        read = found.codec.decode(sys.stdin.read() if value == "-" else value)
    except Mismatch as error:
        fail(2, str(error).replace("the stored value", "the value", 1))
    pushed = finished(_pushed(queue, found, read, delay=delay, at=when, queue=in_queue, attempts=attempts))
    typer.echo(pushed.id)
    if not pushed.new:
        warn(f"nothing was added: job {pushed.id} waits with the same unique key")


async def _pushed(found_in: Queue, kind: Kind[Any], value: Any, **how: Any) -> Pushed:
    async with found_in:
        try:
            return await kind.push(value, **how)
        except (OptionError, ValueRefused) as error:
            fail(2, str(error))


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        fail(2, f"--at {text!r} is no moment; write one such as 2026-09-01T12:00:00+02:00")
    if moment.tzinfo is None:
        fail(2, f"--at {text!r} has no time zone; add +00:00 or Z if it is UTC")
    return moment

"""The queue that a command is about: found by `--app` or in pyproject.toml, opened, and closed again."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer

from fastqueue.cli._show import plain
from fastqueue.codec import error_text
from fastqueue.errors import FastQueueError
from fastqueue.job import StoredJob
from fastqueue.queue import Queue

__all__ = ["App", "ask", "fail", "finished", "jobs_of", "load_queue"]

T = TypeVar("T")

App = Annotated[
    str | None,
    typer.Option("--app", metavar="MODULE:QUEUE", help="The queue, or an app with it as state.queue."),
]

_PAGE = 500


def load_queue(where: str | None) -> Queue:
    """The queue that `--app` names, or else pyproject.toml's `[tool.fastqueue] queue`; exit 2 when there is none."""
    where = where or _configured()
    if where is None:
        fail(2, 'which queue? Give --app module:queue, or write it to pyproject.toml: [tool.fastqueue] queue = "..."')
    module, _, path = where.partition(":")
    if not module or not path:
        fail(2, f"{where!r} names no queue; write it as module:queue")
    if (folder := os.getcwd()) not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    except Exception as error:
        fail(2, f"{where!r} cannot be loaded: {type(error).__name__}: {error_text(error)}")
    queue = found if isinstance(found, Queue) else getattr(getattr(found, "state", None), "queue", None)
    if not isinstance(queue, Queue):
        fail(2, f"{where!r} is {found!r}: neither a Queue, nor an app that has one as state.queue")
    return queue


def ask(where: str | None, question: Callable[[Queue], Awaitable[T]]) -> T:
    """What a function answers about the queue while its store is open; exit 1 when the store fails."""
    queue = load_queue(where)

    async def opened() -> T:
        async with queue:
            return await question(queue)

    return finished(opened())


def finished(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine answers; exit 1 when the store fails."""
    try:
        return asyncio.run(work)
    except BrokenPipeError:
        raise  # who reads the answer has seen enough
    except (FastQueueError, OSError) as error:
        fail(1, f"{type(error).__name__}: {error_text(error)}")


async def jobs_of(
    queue: Queue, *, state: str | None = None, kind: str | None = None, in_queue: str | None = None, after: int = 0
) -> AsyncIterator[StoredJob]:
    """Every job that the store keeps, by id, those with an id greater than `after`, read page by page."""
    now = queue.clock.now()
    while page := await queue.store.jobs(state=state, now=now, kind=kind, queue=in_queue, after=after, limit=_PAGE):
        for job in page:
            yield job
        after = page[-1].id


def fail(status: int, text: str) -> NoReturn:
    """Say what is wrong, and exit."""
    typer.echo(f"fastqueue: {plain(text)}", err=True)
    raise typer.Exit(status)


def _configured() -> str | None:
    file = Path("pyproject.toml")
    try:
        tool = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
    except FileNotFoundError:
        return None
    except ValueError as error:
        fail(2, f"pyproject.toml cannot be read: {error}")
    queue: object = tool.get("fastqueue", {}).get("queue")
    if queue is not None and not isinstance(queue, str):
        fail(2, f'pyproject.toml has [tool.fastqueue] queue = {queue!r}; write it as "module:queue"')
    return queue

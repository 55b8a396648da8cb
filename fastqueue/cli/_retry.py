"""`fastqueue retry` and `forget`: failed jobs back to run, or away, by their ids or by what they have in common."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, TypeAlias

import typer

from fastqueue.cli._app import App, ask, fail
from fastqueue.cli._show import count, warn
from fastqueue.cli._which import NewerThan, OfError, OfKind, OfQueue, OlderThan, Pace, which
from fastqueue.failures import Changed, run_again
from fastqueue.failures import forget as forget_jobs
from fastqueue.job import Which
from fastqueue.queue import Queue

__all__ = ["forget", "retry"]

Words = Annotated[list[str] | None, typer.Argument(metavar="[ID...|all]", help="Ids of failed jobs, or the word all.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")]

Chosen: TypeAlias = Sequence[int] | Which
Change: TypeAlias = Callable[[Queue, Chosen, bool], Awaitable[Changed]]
"""Changes the jobs of a queue that were chosen, or, when it is told so, only says what it would do."""

_LARGEST = 2**63 - 1


def retry(
    words: Words = None,
    app: App = None,
    kind: OfKind = None,
    in_queue: OfQueue = None,
    error: OfError = None,
    older_than: OlderThan = None,
    newer_than: NewerThan = None,
    pace: Pace = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Put failed jobs back, due now or at a pace, from their first attempt."""

    def change(queue: Queue, chosen: Chosen, dry: bool) -> Awaitable[Changed]:
        return run_again(queue, chosen, pace=pace, dry_run=dry)

    options = (kind, in_queue, error, older_than, newer_than)
    changed = _change(app, words, options, change, "back to run", dry_run=dry_run, yes=yes)
    for job in changed.not_failed:
        warn(f"{job.id} has not failed: it waits or runs already")
    _end(changed, wrong=[])


def forget(
    words: Words = None,
    app: App = None,
    kind: OfKind = None,
    in_queue: OfQueue = None,
    error: OfError = None,
    older_than: OlderThan = None,
    newer_than: NewerThan = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Delete failed jobs."""

    def change(queue: Queue, chosen: Chosen, dry: bool) -> Awaitable[Changed]:
        return forget_jobs(queue, chosen, dry_run=dry)

    options = (kind, in_queue, error, older_than, newer_than)
    changed = _change(app, words, options, change, "forgotten", dry_run=dry_run, yes=yes)
    _end(changed, wrong=[job.id for job in changed.not_failed])


def _change(
    app: str | None,
    words: Sequence[str] | None,
    options: tuple[str | None, str | None, str | None, int | None, int | None],
    change: Change,
    done: str,
    *,
    dry_run: bool,
    yes: bool,
) -> Changed:
    ids = _ids(words or [], chosen_by_options=any(option is not None for option in options))

    async def through(queue: Queue) -> Changed:
        chosen = which(queue.clock.now(), *options) if ids is None else ids
        if ids is None and not (dry_run or yes) and sys.stdin.isatty():
            number = (await change(queue, chosen, True)).number
            typer.confirm(f"{count(number, 'job')} {done}?", abort=True)
        return await change(queue, chosen, dry_run)

    changed = ask(app, through)
    typer.echo(f"{count(changed.number, 'job')} {'would be ' if dry_run else ''}{done}.")
    return changed


def _end(changed: Changed, *, wrong: Sequence[int]) -> None:
    if wrong or changed.unknown:
        fail(1, f"no failed job has the id {', '.join(map(str, sorted([*wrong, *changed.unknown])))}")


def _ids(words: Sequence[str], *, chosen_by_options: bool) -> list[int] | None:
    """The ids that were given; None: the options choose, or all are meant."""
    if list(words) == ["all"] or (not words and chosen_by_options):
        return None
    if not words:
        fail(2, "which jobs? Give ids of failed jobs, the one word all, or options such as --kind")
    if chosen_by_options:
        fail(2, "give ids, or options that choose jobs, not both")
    return list(dict.fromkeys(map(_id, words)))


def _id(word: str) -> int:
    if not (word.isascii() and word.isdigit()) or int(word) > _LARGEST:
        fail(2, f"{word!r} is no id; give ids of failed jobs, or the one word all")
    return int(word)

"""`python -m example_app jobs`: the jobs that failed for good, run again or forgotten."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Iterable, Sequence
from typing import Protocol

from fastqueue import Queue
from fastqueue.failures import Changed, forget, groups, run_again
from fastqueue.job import Which

__all__ = ["USAGE", "UsageError", "jobs"]

USAGE = """\
usage: python -m example_app                       serve the app
       python -m example_app jobs                  list the jobs that failed for good
       python -m example_app jobs retry  <id> ...  run them again, from their first attempt
       python -m example_app jobs retry  all
       python -m example_app jobs forget <id> ...  drop them
       python -m example_app jobs forget all
       python -m example_app help                  show this
"""


class UsageError(Exception):
    """The command was written in a way that it does not know; the message says what it is about."""


async def jobs(queue: Queue, words: Sequence[str]) -> int:
    """Do what `jobs ...` asks, without a server and without workers.

    Args:
        queue: The queue whose jobs are meant.
        words: What follows `jobs`.

    Returns:
        The exit status: 0, or 1 when an id is not that of a failed job.

    Raises:
        UsageError: The words make no command.
    """
    match words:
        case []:
            async with queue:
                return await _list(queue)
        case ["retry", *ids] if ids:
            return await _change(queue, ids, run_again, "back to run: the app finds {them} at its next poll")
        case ["forget", *ids] if ids:
            return await _change(queue, ids, forget, "forgotten")
        case _:
            raise UsageError(f"jobs {' '.join(words)}: there is no such command")


class Change(Protocol):
    """What is done with failed jobs."""

    def __call__(self, queue: Queue, jobs: Iterable[int] | Which, /) -> Awaitable[Changed]: ...


async def _change(queue: Queue, words: Sequence[str], change: Change, done: str) -> int:
    chosen = Which() if list(words) == ["all"] else [_id(word) for word in words]
    async with queue:
        changed = await change(queue, chosen)
    print(f"{_count(changed.number, 'job')} {done.format(them='it' if changed.number == 1 else 'them')}.")
    missing = [*changed.unknown, *(job.id for job in changed.not_failed)]
    for id in missing:
        print(f"error: {id} is not the id of a failed job", file=sys.stderr)
    return 1 if missing else 0


def _id(word: str) -> int:
    if not (word.isascii() and word.isdigit()):
        raise UsageError(f"{word}: give the ids of failed jobs, or all")
    return int(word)


async def _list(queue: Queue) -> int:
    number = sum(group.jobs for group in await groups(queue))
    if not number:
        print("No job has failed.")
        return 0
    have = "has" if number == 1 else "have"
    print(f"{_count(number, 'job')} {have} failed for good. Failed jobs are kept for a month.\n")
    async for job in queue.each_failed():
        request = job.carried.get("request_id")
        by = f", pushed by request {_plain(request)}" if request else ""
        print(f"  {job.id}  {_plain(job.kind)}  {job.failed_at:%Y-%m-%d %H:%M:%S} UTC", end="")
        print(f", after {_count(job.attempts, 'attempt')}{by}")
        print(f"      value  {_plain(job.payload)}\n      error  {_plain(job.error or '')}\n")
    print("Run one again:  python -m example_app jobs retry <id>   (or all)")
    print("Drop one:       python -m example_app jobs forget <id>  (or all)")
    return 0


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _plain(text: str) -> str:
    """Show a text on one line. An error may hold what a server sent, and a terminal obeys some of it."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)

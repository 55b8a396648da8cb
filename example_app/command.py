"""`python -m example_app jobs`: the jobs that failed for good, run again or forgotten."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence

from fastqueue import Queue, StoredJob

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


_EVERY = 1_000_000
"""More failed jobs than there ever are."""


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
                return _list(await queue.failed(limit=_EVERY))
        case ["retry", *ids] if ids:
            return await _each(queue, ids, queue.run_again, "back to run: the app finds {them} at its next poll")
        case ["forget", *ids] if ids:
            return await _each(queue, ids, queue.forget, "forgotten")
        case _:
            raise UsageError(f"jobs {' '.join(words)}: there is no such command")


async def _each(queue: Queue, words: Sequence[str], do: Callable[[int], Awaitable[bool]], done: str) -> int:
    every = list(words) == ["all"]
    chosen = [] if every else [_id(word) for word in words]
    async with queue:
        if every:
            chosen = [job.id for job in await queue.failed(limit=_EVERY)]
        missing = [id for id in chosen if not await do(id)]
    count = len(chosen) - len(missing)
    print(f"{_count(count, 'job')} {done.format(them='it' if count == 1 else 'them')}.")
    for id in missing:
        print(f"error: {id} is not the id of a failed job", file=sys.stderr)
    return 1 if missing else 0


def _id(word: str) -> int:
    if not (word.isascii() and word.isdigit()):
        raise UsageError(f"{word}: give the ids of failed jobs, or all")
    return int(word)


def _list(failed: Sequence[StoredJob]) -> int:
    if not failed:
        print("No job has failed.")
        return 0
    have = "has" if len(failed) == 1 else "have"
    print(f"{_count(len(failed), 'job')} {have} failed for good. Failed jobs are kept for a month.\n")
    for job in failed:
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

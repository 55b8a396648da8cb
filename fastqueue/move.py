"""All jobs of one store to another: the move from SQLite to PostgreSQL, or between any two that can."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from fastqueue.errors import MoveRefused, Unsupported
from fastqueue.job import Moment
from fastqueue.moves import Moves
from fastqueue.settings import as_count
from fastqueue.store import Store

__all__ = ["Moved", "move"]


@dataclass(frozen=True, slots=True)
class Moved:
    """What a move has done, or would do.

    Attributes:
        jobs: How many jobs went over.
        schedules: Of how many schedules the last run is known over there.
        held: How many jobs were left, since workers hold them.
    """

    jobs: int
    schedules: int
    held: int


async def move(
    source: Store,
    target: Store,
    *,
    portion: int = 500,
    progress: Callable[[int], object] = lambda jobs: None,
    dry_run: bool = False,
) -> Moved:
    """Move all jobs to another store: those that wait, are delayed or have failed, each with all that is kept of it.

    Their ids stay, unless the other store has jobs with them. Where the runs of schedules have got to goes with them.
    Stop the workers on `source` first: what they hold is left, and a later move takes it. So it does with what is
    pushed to `source` meanwhile. On `target` jobs may be pushed and run. Kinds that are held back for a while, and
    throttles, begin anew.

    It may be stopped at any point, also by SIGKILL: begun again with the same two stores it goes on where it was, and
    no job is lost or there twice.

    Args:
        source: Where the jobs are; open.
        target: Where they go; open. It need not be empty.
        portion: About how many jobs go at a time. Default 500.
        progress: Called after each portion with the number of jobs that went over so far.
        dry_run: Whether to only say what would be done.

    Raises:
        OptionError: `portion` is not a whole number of at least 1.
        Unsupported: one of the stores has no way to move jobs, or keeps less than the other.
        MoveRefused: the two are one store, or a move to a third one was begun and is not over.
        StoreUnavailable: one of them failed. Begin again later.

    Example:
        >>> import asyncio
        >>> from fastqueue.stores.memory import MemoryStore
        >>> asyncio.run(move(MemoryStore(), MemoryStore()))
        Moved(jobs=0, schedules=0, held=0)
    """
    as_count("portion", portion)
    leaving, arriving = _moves(source), _moves(target)
    if lacking := source.keeps - target.keeps:
        raise Unsupported(f"the {target.name} store does not keep {', '.join(sorted(lacking))}, as {source.name} does")
    origin, to = await leaving.identity(), await arriving.identity()
    if origin == to:
        raise MoveRefused("the jobs are there already, since these are two ways to one store: name another to move to")
    runs = {} if source.schedules is None else await source.schedules.recorded()
    counts = await source.counts(await _now(source))
    there = sum(count.waiting + count.delayed + count.failed for count in counts)
    if dry_run:
        jobs = there
    else:
        jobs, there = 0, there + sum(count.running for count in counts)
        # First the schedules, so that no run that was pushed there is pushed again here.
        await arriving.record(runs)
        while jobs < there:  # no further: somebody may be pushing as fast as this goes
            some = await leaving.leave(to, now=await _now(source), limit=portion)
            if some is None:
                break
            await arriving.arrive(some, origin=origin)
            await leaving.left(some.number)
            jobs += len(some.jobs)
            progress(jobs)
        counts = await source.counts(await _now(source))
    return Moved(jobs, len(runs), sum(count.running for count in counts))


def _moves(store: Store) -> Moves:
    if store.moves is None:
        raise Unsupported(f"the {store.name} store has no way to move jobs")
    return store.moves


async def _now(store: Store) -> Moment:
    """The store's clock, by which its holds end, or the machine's."""
    return time.time_ns() // 1_000_000 if store.time is None else await store.time.now()

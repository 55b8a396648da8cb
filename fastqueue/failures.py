"""The jobs that failed for good, many at a time: read, grouped by what went wrong, run again, forgotten.

They are read page by page and changed portion by portion, so that it does not matter how many they are. The latest
failure comes first: a job that fails again meanwhile is ahead of where the reading is, and is not met a second time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count, groupby
from typing import TYPE_CHECKING

from fastqueue.errors import OptionError, Unsupported
from fastqueue.job import Moment, StoredJob, Which
from fastqueue.store import FailedJobs, Store

if TYPE_CHECKING:
    from fastqueue.queue import Queue

__all__ = ["Changed", "Group", "each_failed", "failed_jobs_of", "forget", "groups", "look_up", "run_again"]

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Group:
    """Failed jobs of one kind with one error.

    Attributes:
        jobs: How many they are.
        first: The one that failed first.
        last: The one that failed last.
    """

    kind: str
    error: str
    jobs: int
    first: StoredJob
    last: StoredJob


@dataclass(slots=True)
class Changed:
    """What became of the failed jobs that were to be changed.

    Attributes:
        number: How many were changed.
        not_failed: The jobs with ids that were given which have not failed: they wait, or run. They are left alone.
        unknown: The ids that were given which no job has, or no longer has.
    """

    number: int = 0
    not_failed: list[StoredJob] = field(default_factory=list[StoredJob])
    unknown: list[int] = field(default_factory=list[int])


async def each_failed(store: Store, which: Which | None = None) -> AsyncIterator[StoredJob]:
    """Every failed job that is meant, the latest failure first.

    Args:
        store: Where they are kept; open.
        which: Which are meant. Default: all.

    Raises:
        Unsupported: the store keeps no list of them.

    Example:
        >>> async def errors(store: Store) -> list[str | None]:
        ...     return [job.error async for job in each_failed(store, Which(kind="verify-mail"))]
    """
    failed, last = failed_jobs_of(store), None
    while page := await failed.page(which, limit=_PAGE, after=last):
        for job in page:
            yield job
        last = page[-1]


async def groups(queue: Queue, which: Which | None = None) -> list[Group]:
    """The failed jobs by kind and error, the largest group first, of equal ones the one that failed last.

    Args:
        queue: The queue that they are of.
        which: Which are meant. Default: all.

    Example:
        >>> async def worst(queue: Queue) -> list[str]:
        ...     return [f"{group.jobs} x {group.error}" for group in (await groups(queue))[:3]]
    """
    found: dict[tuple[str, str], Group] = {}
    await queue.ready()
    async for job in each_failed(queue.store, which):
        key = job.kind, job.error or ""
        group = found.get(key)
        found[key] = Group(*key, group.jobs + 1, job, group.last) if group else Group(*key, 1, job, job)
    return sorted(found.values(), key=lambda group: -group.jobs)


async def run_again(
    queue: Queue, jobs: Iterable[int] | Which, *, pace: float | None = None, dry_run: bool = False
) -> Changed:
    """Put failed jobs back, from their first attempt.

    Args:
        queue: The queue that they are of.
        jobs: Their ids, or which of the failed jobs are meant.
        pace: How many come due in a second. They are all put back now, and given moments from now on, so that nobody
            has to stay and hand them out, and several workers together keep to it. Default: all are due now.
        dry_run: Whether to only say what would be done. Default False.

    Raises:
        OptionError: `pace` is not more than 0.
        Unsupported: the store keeps no failed jobs.
        StoreUnavailable: the store failed; some may have been put back.

    Example:
        >>> async def slowly(queue: Queue) -> int:
        ...     return (await run_again(queue, Which(kind="verify-mail"), pace=5)).number
    """
    if pace is not None and not pace > 0:
        raise OptionError(f"pace={pace!r}; it takes more than 0 jobs a second")
    await queue.ready()
    failed, now, place = failed_jobs_of(queue.store), queue.clock.now(), count()

    def due(_: int) -> Moment:
        return now if pace is None else now + int(next(place) / pace) * 1000

    async def again(ids: Sequence[int]) -> list[bool]:
        answers: list[bool] = []
        for at, together in groupby(ids, due):
            answers += await failed.run_again(list(together), at=at)
        return answers

    changed = await (_count(queue, jobs) if dry_run else _change(queue, jobs, again))
    queue.wake()
    return changed


async def forget(queue: Queue, jobs: Iterable[int] | Which, *, dry_run: bool = False) -> Changed:
    """Delete failed jobs.

    Args:
        queue: The queue that they are of.
        jobs: Their ids, or which of the failed jobs are meant.
        dry_run: Whether to only say what would be done. Default False.

    Raises:
        Unsupported: the store keeps no failed jobs.
        StoreUnavailable: the store failed; some may have been deleted.

    Example:
        >>> async def clean_up(queue: Queue) -> list[int]:
        ...     return (await forget(queue, [41, 42])).unknown
    """
    await queue.ready()
    return await (_count(queue, jobs) if dry_run else _change(queue, jobs, failed_jobs_of(queue.store).forget))


async def look_up(queue: Queue, id: int) -> StoredJob | None:
    """The job with an id, whatever its state; None: there is none.

    Args:
        queue: The queue that it is of.
        id: The id that its push answered.

    Example:
        >>> async def is_over(queue: Queue, id: int) -> bool:
        ...     return await look_up(queue, id) is None
    """
    found = await queue.store.jobs(now=queue.clock.now(), after=id - 1, limit=1)
    return next((job for job in found if job.id == id), None)


def failed_jobs_of(store: Store) -> FailedJobs:
    """The store's faculty of keeping failed jobs, with its verbs.

    Args:
        store: The store.

    Raises:
        Unsupported: it has none.

    Example:
        >>> from fastqueue.stores.memory import MemoryStore
        >>> isinstance(failed_jobs_of(MemoryStore()), FailedJobs)
        True
    """
    if store.failed is None:
        raise Unsupported(f"the {store.name} store keeps no list of failed jobs")
    return store.failed


async def _change(
    queue: Queue, jobs: Iterable[int] | Which, change: Callable[[Sequence[int]], Awaitable[list[bool]]]
) -> Changed:
    changed = Changed()
    async for ids in _portions(queue, jobs):
        answers = await change(ids)
        changed.number += sum(answers)
        for id in (id for id, done in zip(ids, answers, strict=True) if not done):
            found = await look_up(queue, id)
            if found is None:
                changed.unknown.append(id)
            else:
                changed.not_failed.append(found)
    return changed


async def _count(queue: Queue, jobs: Iterable[int] | Which) -> Changed:
    """What a change would do."""

    async def have_failed(ids: Sequence[int]) -> list[bool]:
        if isinstance(jobs, Which):
            return [True] * len(ids)
        found = [await look_up(queue, id) for id in ids]
        return [job is not None and job.failed_ms is not None for job in found]

    return await _change(queue, jobs, have_failed)


async def _portions(queue: Queue, jobs: Iterable[int] | Which) -> AsyncIterator[list[int]]:
    if isinstance(jobs, Which):
        portion: list[int] = []
        async for job in each_failed(queue.store, jobs):
            portion.append(job.id)
            if len(portion) == _PAGE:
                yield portion
                portion = []
    else:
        portion = list(dict.fromkeys(jobs))
    for start in range(0, len(portion), _PAGE):
        yield portion[start : start + _PAGE]

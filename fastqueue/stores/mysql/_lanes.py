"""The lanes that are known to be in the database, where a claim looks for jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from fastqueue.job import NewJob
from fastqueue.moves import MovedJob
from fastqueue.stores._sql import Call, Steps
from fastqueue.stores.mysql._access import Access

__all__ = ["Lanes"]

Key: TypeAlias = tuple[str, str, int, str]
"""Queue, kind, mode and part."""


class Lanes:
    """What this store object knows of the lanes that were ever pushed into.

    A lane must be committed before the first job in it is, and must outlast a rollback of that job: it is written on a
    connection of the store's own, and each statement by itself.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._known: set[Key] = set()

    def forget(self) -> None:
        """Know nothing: the tables may be others by now."""
        self._known.clear()

    async def ready(self, jobs: Sequence[NewJob | MovedJob]) -> None:
        """See that the lanes of jobs that are about to be pushed are there."""
        if self._lacking(jobs):
            await self._access.each(self._access.here.looks, lambda: self.steps(jobs))

    def steps(self, jobs: Sequence[NewJob | MovedJob]) -> Steps[None]:
        """The same, by `fresh` calls."""
        if not self._lacking(jobs):
            return
        statements = self._access.statements
        got = yield Call(statements["lanes.known"], {}, fresh=True)
        self._known.update((queue, kind, mode, part) for queue, kind, mode, part in got.rows)
        lacking = self._lacking(jobs)
        if lacking:
            kinds = [{"kind": kind} for kind in sorted({kind for _, kind, _, _ in lacking})]
            yield Call(statements["lanes.kinds"], {"rows": kinds}, fresh=True)
            rows = [{"queue": queue, "kind": kind, "mode": mode, "part": part} for queue, kind, mode, part in lacking]
            yield Call(statements["lanes.add"], {"rows": rows}, fresh=True)
            self._known.update(lacking)

    def _lacking(self, jobs: Iterable[NewJob | MovedJob]) -> list[Key]:
        """Those not known to be there, sorted, so that no two stores that write them wait for each other."""
        return sorted({(job.queue, job.kind, job.mode, "") for job in jobs} - self._known)

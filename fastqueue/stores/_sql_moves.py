"""How jobs leave and reach an SQL store: rows that are marked, and a line about them in the table of names and values.

A row on its way is held by no claim but by a portion: its token is the portion's number with a minus, its `held_until`
a moment that never comes. The line `moving` says which ids the portion lies between, and the lines `moved ...`, one for
each store that jobs came from, which portion was the last.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any, Generic, NamedTuple, TypeAlias

from fastqueue.errors import MoveRefused
from fastqueue.job import Moment
from fastqueue.moves import MovedJob, Moves, Portion
from fastqueue.stores._rows import NEVER
from fastqueue.stores._sql import Call, Steps
from fastqueue.stores._sql_store import A

__all__ = ["MOVED", "Key", "SQLMoves"]

Key: TypeAlias = tuple[str, str]
"""A kind and a unique key."""

MOVED = tuple(field.name for field in fields(MovedJob))
"""The columns of a job that moves, in the order in which they are read."""


class _OnItsWay(NamedTuple):
    """The portion that was taken last, and the ids it lies between: 0 and 0 when it has left."""

    number: int
    first: int
    last: int
    to: str

    @classmethod
    def read(cls, text: str) -> _OnItsWay:
        number, first, last, to = text.split(" ", 3) if text else ("0", "0", "0", "")
        return cls(int(number), int(first), int(last), to)

    def __str__(self) -> str:
        return " ".join(map(str, self))


class SQLMoves(Moves, Generic[A]):
    """The verbs for every dialect; what a dialect does in its own way is left to it.

    Args:
        access: The way to the database.
    """

    def __init__(self, access: A) -> None:
        self._access = access

    def _waiting(self, keys: Sequence[Key]) -> Steps[set[Key]]:
        """Those keys that jobs wait with; nobody pushes any of them until the transaction ends, or that fails."""
        waiting: set[Key] = set()
        for kind, key in keys:
            got = yield self._call("push.waiting", kind=kind, unique_key=key)
            if got.rows:
                waiting.add((kind, key))
        return waiting

    @abstractmethod
    def _keep(self, rows: Sequence[Mapping[str, Any]]) -> Steps[None]:
        """Insert rows of `MOVED` columns and `due`; one without an id is given one."""

    def _alone(self, last: int) -> Steps[None]:
        """Let nobody else be given one of the ids up to `last` until the transaction ends, or have that fail."""
        yield from ()

    async def _ready(self, jobs: Sequence[MovedJob]) -> None:
        """Do what must be committed before the jobs are kept."""

    async def identity(self) -> str:
        return await self._access.identify()

    async def leave(self, to: str, *, now: Moment, limit: int) -> Portion | None:
        return await self._access.change(lambda: self._leave(to, now, limit))

    def _leave(self, to: str, now: Moment, limit: int) -> Steps[Portion | None]:
        moving = _OnItsWay.read((yield from self._line("moving")))
        if not moving.last:
            got = yield self._call("moves.first", now=now, limit=limit)
            if not got.rows:
                return None
            moving = _OnItsWay(moving.number + 1, got.rows[0][0], got.rows[-1][0], to)
            between = {"first": moving.first, "last": moving.last}
            yield self._call("moves.take", **between, now=now, token=-moving.number)
            yield self._call("moves.note", name="moving", value=str(moving))
        elif moving.to != to:
            raise MoveRefused(
                f"portion {moving.number} is on its way to another store, with the identity {moving.to}: "
                "finish that move first"
            )
        got = yield self._call("moves.leaving", first=moving.first, last=moving.last, token=-moving.number)
        return Portion(moving.number, [MovedJob(**dict(zip(MOVED, row, strict=True))) for row in got.rows])

    async def left(self, number: int) -> None:
        await self._access.change(lambda: self._left(number))

    def _left(self, number: int) -> Steps[None]:
        moving = _OnItsWay.read((yield from self._line("moving")))
        if moving.number == number and moving.last:
            yield self._call("moves.left", first=moving.first, last=moving.last, token=-number)
            yield self._call("moves.note", name="moving", value=str(moving._replace(first=0, last=0)))

    async def arrive(self, portion: Portion, *, origin: str) -> bool:
        await self._ready(portion.jobs)
        return await self._access.change(lambda: self._arrive(portion, f"moved {origin}"))

    def _arrive(self, portion: Portion, line: str) -> Steps[bool]:
        if portion.number <= int((yield from self._line(line)) or 0):
            return False
        if jobs := portion.jobs:
            yield from self._alone(jobs[-1].id)
            got = yield self._call("moves.taken", first=jobs[0].id, last=jobs[-1].id)
            ids = {row[0] for row in got.rows}
            keyed = sorted((job.kind, job.unique_key) for job in jobs if job.unique_key is not None)
            waiting = (yield from self._waiting(keyed)) if keyed else set()
            rows = [_row(job, ids, waiting) for job in jobs]
            # First those with ids, so that no new id is one of theirs.
            for some in ([row for row in rows if row["id"] is not None], [row for row in rows if row["id"] is None]):
                if some:
                    yield from self._keep(some)
        yield self._call("moves.note", name=line, value=str(portion.number))
        return True

    async def record(self, runs: Mapping[str, Moment]) -> None:
        await self._access.change(lambda: self._record(runs))

    def _record(self, runs: Mapping[str, Moment]) -> Steps[None]:
        for name, run_at in sorted(runs.items()):
            yield self._call("schedules.record", name=name, run_at=run_at)

    def _line(self, name: str) -> Steps[str]:
        """A line of the table of names and values, locked until the transaction ends."""
        yield self._call("moves.begin", name=name)
        got = yield self._call("moves.noted", name=name)
        return str(got.rows[0][0])

    def _call(self, statement: str, **values: Any) -> Call:
        return Call(self._access.statements[statement], values)


def _row(job: MovedJob, ids: set[int], waiting: set[Key]) -> dict[str, Any]:
    key = job.unique_key
    kept = replace(job, unique_key=None) if key is not None and (job.kind, key) in waiting else job
    due = NEVER if job.failed_at is not None else job.run_at
    return asdict(kept) | {"id": None if job.id in ids else job.id, "due": due}

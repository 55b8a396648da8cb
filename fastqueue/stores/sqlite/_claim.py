"""Claim: find the lanes with something due, walk them as one line, and take what the limits let through.

The write lock is the gate: nobody else claims or settles meanwhile, so what is counted is what is held.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from fastqueue.job import Moment
from fastqueue.store import Claim
from fastqueue.stores._rows import CLAIMED, claimed
from fastqueue.stores.sqlite._database import Database

__all__ = ["HeadLane", "Request", "head_lanes"]

_Row: TypeAlias = tuple[Any, ...]
"""A job's `due` and then its `CLAIMED` columns, so that rows compare by their places in the line."""

_DUE, _ID = 0, 1
_KIND, _ALONE, _MODE = (1 + CLAIMED.index(name) for name in ("kind", "alone_key", "mode"))


class HeadLane(NamedTuple):
    """A lane that has waiting jobs.

    Attributes:
        head: When its first job is due.
        back: Until when its kind is held back; 0: it is not.
    """

    queue: str
    kind: str
    mode: int
    part: str
    head: Moment
    back: Moment

    @property
    def opens(self) -> Moment:
        """When there is something to claim in it."""
        return max(self.head, self.back)


def head_lanes(database: Database, queues: Sequence[str] | None) -> list[HeadLane]:
    """The lanes of some queues that have waiting jobs; None: of all."""
    if queues is None:
        queues = [queue for (queue,) in database.do("lanes.queues")]
    return [HeadLane(*row) for row in database.do("lanes.heads", queues=json.dumps(list(dict.fromkeys(queues))))]


class Request:
    """A claim as its caller asked for it."""

    def __init__(
        self, now: Moment, *, token: int, limit: int, queues: Sequence[str] | None, kinds: Collection[str]
    ) -> None:
        self.now = now
        self.token = token
        self.limit = limit
        self.queues = queues
        self.kinds = frozenset(kinds)
        self._kinds_text = json.dumps(sorted(self.kinds))

    def look(self, database: Database) -> Claim | None:
        """A read: the empty answer when there is nothing to take; None: there is."""
        if self._holds_are_over(database):
            return None
        walk = _Walk(database, self.now, self._lanes(database))
        return None if walk.has_room else Claim([], min(walk.later, default=None))

    def take(self, database: Database) -> Claim:
        """Within a transaction: the walk of the line, and what it took is held."""
        if self._holds_are_over(database):
            database.do("claim.free", kinds=self._kinds_text, now=self.now)
        walk = _Walk(database, self.now, self._lanes(database))
        rows = list(islice(walk.take(self.queues), self.limit))
        if rows:
            ids = json.dumps([row[_ID] for row in rows])
            database.do("claim.take", ids=ids, now=self.now, token=self.token)
        return Claim([claimed(row[1:], self.token) for row in rows], min(walk.later, default=None))

    def _holds_are_over(self, database: Database) -> bool:
        ((over,),) = database.do("claim.lost", kinds=self._kinds_text, now=self.now)
        return bool(over)

    def _lanes(self, database: Database) -> list[HeadLane]:
        return [lane for lane in head_lanes(database, self.queues) if lane.kind in self.kinds]


class _Walk:
    """One walk of the line.

    Attributes:
        later: The moments at which lanes that it has seen have something due after this.
    """

    def __init__(self, database: Database, now: Moment, lanes: Sequence[HeadLane]) -> None:
        self._database = database
        self._now = now
        self._lanes = [lane for lane in lanes if lane.opens <= now]
        self.later = [lane.opens for lane in lanes if lane.opens > now]
        self._held: Counter[str] = Counter()
        self._alone: set[tuple[str, str]] = set()
        limited = sorted({lane.kind for lane in self._lanes if lane.mode})
        if limited:
            for kind, alone_key in database.do("claim.held", kinds=json.dumps(limited), now=now):
                self._count(kind, alone_key)

    @property
    def has_room(self) -> bool:
        """Whether a lane has something due, and its kind is not full."""
        return any(not self._full(lane.kind, lane.mode) for lane in self._lanes)

    def take(self, queues: Sequence[str] | None) -> Iterator[_Row]:
        """The jobs that the limits let through, in order, each counted from then on."""
        for lanes in self._in_order(queues):
            for row in merge(*map(self._line, lanes)):
                if not row[_MODE] or self._lets_through(row):
                    self._count(row[_KIND], row[_ALONE])
                    yield row

    def _in_order(self, queues: Sequence[str] | None) -> list[list[HeadLane]]:
        if queues is None:
            return [self._lanes]
        return [[lane for lane in self._lanes if lane.queue == queue] for queue in dict.fromkeys(queues)]

    def _line(self, lane: HeadLane) -> Iterator[_Row]:
        """A lane's due jobs, read one by one, up to where its kind is full."""
        place = {"queue": lane.queue, "kind": lane.kind, "mode": lane.mode, "part": lane.part}
        for row in self._database.do("claim.line", now=self._now, **place):
            if row[_DUE] > self._now:
                self.later.append(row[_DUE])
                return
            if self._full(lane.kind, lane.mode):
                return
            if not lane.mode or self._lets_through(row):
                yield row

    def _lets_through(self, row: _Row) -> bool:
        return not self._full(row[_KIND], row[_MODE]) and (row[_KIND], row[_ALONE]) not in self._alone

    def _full(self, kind: str, mode: int) -> bool:
        return mode > 1 and self._held[kind] >= mode // 2

    def _count(self, kind: str, alone_key: str | None) -> None:
        self._held[kind] += 1
        if alone_key is not None:
            self._alone.add((kind, alone_key))

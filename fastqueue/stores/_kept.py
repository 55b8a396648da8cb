"""What the memory store keeps, and how each thing that can happen to a job changes it."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, merge
from itertools import islice
from typing import TypeAlias
from uuid import uuid4

from fastqueue.errors import MoveRefused
from fastqueue.job import Claimed, Moment, NewJob, Pushed, StoredJob
from fastqueue.moves import MovedJob, Portion
from fastqueue.outcome import Ending, Settlement
from fastqueue.store import Hits

__all__ = ["Kept"]

Line: TypeAlias = list[tuple[Moment, int]]
"""The (run_at, id) of a lane's waiting jobs, sorted: the order in which they are claimed."""

LaneKey: TypeAlias = tuple[str, str, int]
"""Queue, kind and mode."""


_ON_ITS_WAY: Moment = 2**63 - 2
"""Until when a job is held that is on its way to another store."""


@dataclass(slots=True)
class Row:
    """A job as it is kept: what its push gave, and what has happened to it since."""

    id: int
    given: NewJob
    run_at: Moment
    unique_key: str | None = None
    attempts: int = 0
    interruptions: int = 0
    error: str | None = None
    token: int = 0
    held_until: Moment = 0  # 0: no claim holds it
    failed_at: Moment | None = None

    @property
    def lane(self) -> LaneKey:
        return self.given.queue, self.given.kind, self.given.mode

    @property
    def place(self) -> tuple[Moment, int]:
        return self.run_at, self.id

    @property
    def alone(self) -> tuple[str, str] | None:
        return None if self.given.alone_key is None else (self.given.kind, self.given.alone_key)

    def claimed(self, unique_key: str | None, *, lost: bool) -> Claimed:
        given = self.given
        return Claimed(
            id=self.id,
            token=self.token,
            kind=given.kind,
            queue=given.queue,
            payload=given.payload,
            run_at=self.run_at,
            held_until=self.held_until,
            hold_ms=given.hold_ms,
            attempts=self.attempts,
            interruptions=self.interruptions,
            options=given.options,
            unique_key=unique_key,
            alone_key=given.alone_key,
            at_once=given.at_once,
            carried=given.carried,
            schedule=given.schedule,
            error=self.error,
            lost=lost,
        )

    def moved(self) -> MovedJob:
        given = self.given
        return MovedJob(
            id=self.id,
            queue=given.queue,
            kind=given.kind,
            mode=given.mode,
            part="",
            run_at=self.run_at,
            hold_ms=given.hold_ms,
            attempts=self.attempts,
            interruptions=self.interruptions,
            payload=given.payload,
            options=given.options,
            unique_key=self.unique_key,
            alone_key=given.alone_key,
            carried=given.carried,
            schedule=given.schedule,
            error=self.error,
            failed_at=self.failed_at,
            created_at=self.run_at,
        )

    @classmethod
    def of(cls, job: MovedJob, id: int) -> Row:
        """A job that has left another store; its unique key is yet to be taken."""
        given = NewJob(
            kind=job.kind,
            payload=job.payload,
            run_at=job.run_at,
            queue=job.queue,
            hold_ms=job.hold_ms,
            options=job.options,
            alone_key=job.alone_key,
            at_once=job.mode // 2,
            carried=job.carried,
            schedule=job.schedule,
        )
        return cls(
            id,
            given,
            job.run_at,
            attempts=job.attempts,
            interruptions=job.interruptions,
            error=job.error,
            failed_at=job.failed_at,
        )

    def stored(self) -> StoredJob:
        given = self.given
        return StoredJob(
            id=self.id,
            kind=given.kind,
            queue=given.queue,
            payload=given.payload,
            run_ms=self.run_at,
            attempts=self.attempts,
            held_ms=self.held_until or None,
            failed_ms=self.failed_at,
            error=self.error,
            options=given.options,
            unique_key=self.unique_key,
            alone_key=given.alone_key,
            at_once=given.at_once,
            carried_text=given.carried,
            schedule=given.schedule,
        )


class Kept:
    """Everything that is kept. A job is in `rows`, and in a line, held or in `failed`."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}
        self.lines: dict[LaneKey, Line] = {}
        self.failed: dict[int, Row] = {}
        self.waiting_keys: dict[tuple[str, str], Row] = {}
        self.held: Counter[str] = Counter()
        self.held_alone: set[tuple[str, str]] = set()
        self.held_kinds: dict[str, Moment] = {}
        self.runs: dict[str, Moment] = {}
        self.zone_data: dict[str, Moment] = {}
        self.windows: dict[str, Hits] = {}
        self.identity = uuid4().hex
        self.last_portion: dict[str, int] = {}
        self.moving: tuple[str, Portion] | None = None
        self._portions = 0
        self._ends: list[tuple[Moment, int]] = []
        self._last_id = 0

    def push(self, job: NewJob, *, move: bool) -> Pushed:
        waiting = None if job.unique_key is None else self.waiting_keys.get((job.kind, job.unique_key))
        if waiting is not None:
            if move and not waiting.held_until:
                self._leave_line(waiting)
                waiting.run_at = job.run_at
                self._queue_up(waiting)
            return Pushed(waiting.id, new=False)
        self._last_id += 1
        row = self.rows[self._last_id] = Row(self._last_id, job, job.run_at)
        self._take_key(row, job.unique_key)
        self._queue_up(row)
        return Pushed(row.id, new=True)

    def lapse(self, now: Moment) -> None:
        """Jobs whose hold is over wait again. They keep the token, by which their claim may still settle them."""
        while self._ends and self._ends[0][0] <= now:
            until, id = heappop(self._ends)
            row = self.rows.get(id)
            if row is not None and row.held_until == until:
                self._end_hold(row)
                self._queue_up(row)

    def walk(self, now: Moment, limit: int, queue: str | None, kinds: Collection[str]) -> list[Row]:
        """The jobs of a queue (None: of all) that a claim of at most `limit` gets, in order, counted as held."""
        free = {kind for kind in kinds if self.held_kinds.get(kind, now) <= now}
        lanes = [line for lane, line in self.lines.items() if lane[1] in free and queue in (None, lane[0])]
        taken: list[Row] = []
        for _, id in merge(*(self._while_free(line, now) for line in lanes)):
            if len(taken) == limit:
                break
            row = self.rows[id]
            if not self._full(row) and row.alone not in self.held_alone:
                self._count(row)
                taken.append(row)
        return taken

    def next_due(self, now: Moment, queues: Sequence[str] | None, kinds: Collection[str]) -> Moment | None:
        """The earliest moment after `now` at which a claim of these kinds and queues may find a job more."""
        opens = (
            self._opens(kind, line, now)
            for (queue, kind, _), line in self.lines.items()
            if kind in kinds and (queues is None or queue in queues)
        )
        return min((moment for moment in opens if moment is not None), default=None)

    def _opens(self, kind: str, line: Line, now: Moment) -> Moment | None:
        back = self.held_kinds.get(kind, now)
        if back > now:
            return max(back, line[0][0])
        at = _due(line, now)
        return line[at][0] if at < len(line) else None

    def hold(self, row: Row, *, token: int, until: Moment) -> Claimed:
        """Let a claim have a job that its walk has counted."""
        self._leave_line(row)
        key, lost = row.unique_key, row.token != 0
        if key is not None:
            del self.waiting_keys[row.given.kind, key]
        row.unique_key, row.token = None, token
        row.attempts += 1
        self._hold_until(row, until)
        return row.claimed(key, lost=lost)

    def renew(self, job: Claimed, *, now: Moment, until: Moment) -> bool:
        row = self._of_claim(job.id, job.token)
        if row is None or row.held_until <= now:
            return False
        self._hold_until(row, until)
        return True

    def settle(self, told: Settlement) -> bool:
        row = self._of_claim(told.id, told.token)
        if row is None:
            return False
        self._let_go(row)
        if told.ending is Ending.GONE:
            del self.rows[row.id]
            return True
        row.error, row.attempts, row.interruptions = told.error, told.attempts, told.interruptions
        if told.ending is Ending.FAILED:
            row.failed_at = told.at
            self.failed[row.id] = row
        else:
            row.run_at = told.at
            self._queue_up(row)
        return True

    def give_back(self, job: Claimed) -> bool:
        row = self._of_claim(job.id, job.token)
        if row is None:
            return False
        self._let_go(row)
        row.attempts -= 1
        if (job.kind, job.unique_key) not in self.waiting_keys:
            self._take_key(row, job.unique_key)
        self._queue_up(row)
        return True

    def run_again(self, id: int, at: Moment) -> bool:
        row = self.failed.pop(id, None)
        if row is None:
            return False
        row.failed_at, row.run_at, row.attempts = None, at, 0
        self._queue_up(row)
        return True

    def forget(self, id: int) -> bool:
        if self.failed.pop(id, None) is None:
            return False
        del self.rows[id]
        return True

    def leave(self, to: str, limit: int) -> Portion | None:
        if self.moving is None:
            ids = sorted(id for id, row in self.rows.items() if not row.held_until)[:limit]
            if not ids:
                return None
            self._portions += 1
            for id in ids:
                self._mark(self.rows[id], -self._portions)
            self.moving = to, Portion(self._portions, [self.rows[id].moved() for id in ids])
        elif self.moving[0] != to:
            raise MoveRefused(f"a portion is on its way to another store, with the identity {self.moving[0]}")
        return self.moving[1]

    def left(self, number: int) -> None:
        if self.moving is None or self.moving[1].number != number:
            return
        for job in self.moving[1].jobs:
            row = self.rows.pop(job.id)
            if row.unique_key is not None:
                del self.waiting_keys[job.kind, row.unique_key]
            if row.failed_at is None:
                self._end_hold(row)
        self.moving = None

    def arrive(self, portion: Portion, origin: str) -> bool:
        if portion.number <= self.last_portion.get(origin, 0):
            return False
        taken = set(self.rows)
        self._last_id = max([self._last_id, *(job.id for job in portion.jobs)])
        for job in portion.jobs:
            if job.id in taken:
                self._last_id += 1
            row = Row.of(job, self._last_id if job.id in taken else job.id)
            self.rows[row.id] = row
            if (job.kind, job.unique_key) not in self.waiting_keys:
                self._take_key(row, job.unique_key)
            if row.failed_at is None:
                self._queue_up(row)
            else:
                self.failed[row.id] = row
        self.rows = dict(sorted(self.rows.items()))
        self.last_portion[origin] = portion.number
        return True

    def _mark(self, row: Row, token: int) -> None:
        """Let a portion have a job: no claim, and nobody who looks for failed ones, finds it."""
        row.token = token
        if self.failed.pop(row.id, None) is None:
            self._leave_line(row)
            self._count(row)
            row.held_until = _ON_ITS_WAY

    def _of_claim(self, id: int, token: int) -> Row | None:
        row = self.rows.get(id)
        return row if row is not None and row.token == token and row.failed_at is None else None

    def _let_go(self, row: Row) -> None:
        """End a claim: the job is in no line, held by nobody and has no token."""
        if row.held_until:
            self._end_hold(row)
        else:
            self._leave_line(row)
        row.token = 0

    def _queue_up(self, row: Row) -> None:
        insort(self.lines.setdefault(row.lane, []), row.place)

    def _leave_line(self, row: Row) -> None:
        line = self.lines[row.lane]
        del line[bisect_left(line, row.place)]
        if not line:
            del self.lines[row.lane]

    def _take_key(self, row: Row, key: str | None) -> None:
        if key is not None:
            row.unique_key = key
            self.waiting_keys[row.given.kind, key] = row

    def _while_free(self, line: Line, now: Moment) -> Iterator[tuple[Moment, int]]:
        """The due part of a line, cut off where its limit is reached: all that follow in a lane share its limit."""
        row = self.rows[line[0][1]]
        for place in islice(line, _due(line, now)):
            if self._full(row):
                return
            yield place

    def _full(self, row: Row) -> bool:
        return 0 < row.given.at_once <= self.held[row.given.kind]

    def _count(self, row: Row) -> None:
        self.held[row.given.kind] += 1
        if row.alone is not None:
            self.held_alone.add(row.alone)

    def _hold_until(self, row: Row, until: Moment) -> None:
        row.held_until = until
        heappush(self._ends, (until, row.id))

    def _end_hold(self, row: Row) -> None:
        row.held_until = 0
        self.held[row.given.kind] -= 1
        if row.alone is not None:
            self.held_alone.discard(row.alone)


def _due(line: Line, now: Moment) -> int:
    """How many jobs of a line are due."""
    return bisect_left(line, (now + 1, 0))

"""The claim: one statement, and where it need not look again.

Rows that were claimed and settled stay in the lanes' index until vacuum, and while any old snapshot is open vacuum
leaves them; each claim would walk over all of them. So when a claim tells that it walked far, the next ones begin each
lane that nothing limits where the last found its jobs: the low water. What comes in below is found when a claim looks
from zero again, which is every second, and at once when one found less than it was asked for.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import itemgetter

from fastqueue.job import Claimed, Moment
from fastqueue.store import Claim
from fastqueue.stores._rows import CLAIMED, NEVER, Row, claimed
from fastqueue.stores.postgres._access import Access

__all__ = ["Claimer"]

LOOKS_AGAIN_AFTER = 1_000
"""Milliseconds after which a claim looks from zero, however much it found."""

LOOKS_FOR = 20
"""How many times longer the claims between two looks from zero take together than such a look, at least."""

_ID, _KIND, _QUEUE, _RUN_AT, _PLACE, _MODE = map(CLAIMED.index, ("id", "kind", "queue", "run_at", "attempts", "mode"))
_in_line = itemgetter(_RUN_AT, _ID)


@dataclass(frozen=True, slots=True)
class Request:
    """What a claim is asked for."""

    now: Moment
    token: int
    limit: int
    queues: tuple[str, ...] | None
    kinds: frozenset[str]


@dataclass(slots=True)
class LowWater:
    """Where each lane's jobs begin, for claims of the same queues and kinds.

    Attributes:
        since, until: The moments between which it is believed.
        lanes: The place of its queue, queue, kind and mode of each lane, and the moment from which on to look.
    """

    queues: tuple[str, ...] | None
    kinds: frozenset[str]
    since: Moment
    until: Moment
    lanes: dict[tuple[int, str, str, int], Moment]

    @classmethod
    def found(cls, notes: Sequence[Row], request: Request, *, until: Moment) -> LowWater:
        """What a claim told of the lanes it saw."""
        lanes = {(note[_PLACE], note[_QUEUE], note[_KIND], note[_MODE]): note[_RUN_AT] for note in notes}
        marks = {lane: -NEVER if lane[3] else min(head, request.now) for lane, head in lanes.items()}
        return cls(request.queues, request.kinds, request.now, until, marks)

    def serves(self, request: Request) -> bool:
        """Whether a claim may begin there."""
        same = self.queues == request.queues and self.kinds == request.kinds
        return same and self.since <= request.now < self.until

    def rise(self, jobs: Sequence[Claimed]) -> None:
        """Move each lane on to the first of the jobs just taken from it: those before it are taken."""
        first = {(job.queue, job.kind): job.run_at for job in reversed(jobs) if not job.limited}
        for lane, mark in self.lanes.items():
            _, queue, kind, mode = lane
            if mode == 0:
                self.lanes[lane] = max(mark, first.get((queue, kind), mark))


class Claimer:
    """The claims of one store object."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._low: LowWater | None = None

    async def claim(
        self, now: Moment, *, token: int, limit: int, queues: Sequence[str] | None, kinds: Collection[str]
    ) -> Claim:
        """Take due jobs; see `Store.claim`."""
        request = Request(now, token, limit, None if queues is None else tuple(dict.fromkeys(queues)), frozenset(kinds))
        low = self._low
        if low is not None and low.serves(request):
            jobs, _ = await self._take(request, low)
            if len(jobs) == limit:
                low.rise(jobs)
                return Claim(jobs)
            self._low = None
            if jobs:
                # A second statement could fail, or be cancelled, and these would be lost to the caller.
                return Claim(jobs, next_due=now)
        return await self._from_zero(request)

    async def _from_zero(self, request: Request) -> Claim:
        self._low = None
        began = time.perf_counter()
        jobs, notes = await self._take(request, None)
        if len(jobs) < request.limit:
            return Claim(jobs, next((note[_RUN_AT] for note in notes), None))
        if notes:
            took = int((time.perf_counter() - began) * 1000)
            self._low = LowWater.found(notes, request, until=request.now + max(LOOKS_AGAIN_AFTER, LOOKS_FOR * took))
        return Claim(jobs)

    async def _take(self, request: Request, low: LowWater | None) -> tuple[list[Claimed], list[Row]]:
        """The jobs taken, in their order, and what the claim tells about its look."""
        lanes = None if low is None else list(zip(*low.lanes, strict=True))
        places, queues, kinds, modes = lanes or (None, None, None, None)
        got = await self._access.do_on(
            self._access.here.claims,
            "claim.take",
            now=request.now,
            token=request.token,
            limit=request.limit,
            queues=request.queues,
            kinds=request.kinds,
            lane_places=places,
            lane_queues=queues,
            lane_kinds=kinds,
            lane_modes=modes,
            lane_marks=None if low is None else list(low.lanes.values()),
        )
        rows, notes = list(got.rows), list[Row]()
        while rows and rows[-1][_ID] is None:
            notes.append(rows.pop())
        rows.sort(key=_in_line)
        if request.queues is not None and len(request.queues) > 1:
            place = {queue: n for n, queue in reversed(list(enumerate(request.queues)))}
            rows.sort(key=lambda row: place[row[_QUEUE]])
        return [claimed(row, request.token) for row in rows], notes

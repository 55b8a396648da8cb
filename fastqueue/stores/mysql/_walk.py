"""The walk along the line: which due jobs the limits let through, found without a lock.

What is chosen is locked afterwards. Nobody else claims of the lanes that are limited meanwhile, since their gates are
locked; and of those whose jobs have no keys it only matters how many are taken.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from fastqueue.job import Moment
from fastqueue.stores._rows import NEVER, Row
from fastqueue.stores._sql import Call, Statements, Steps

__all__ = ["Chosen", "Held", "LaneHead", "walk"]

DEEPER = 4
"""How many times more places of a lane are read where jobs of one key may stand one after the other."""


class LaneHead(NamedTuple):
    """A lane as a look sees it.

    Attributes:
        back: Until when its kind is held back.
        head: When its first job is due; NEVER or None: none waits.
        over: When the first hold of its kind is over; NEVER or None: none is held.
    """

    queue: str
    kind: str
    mode: int
    part: str
    back: Moment
    head: Moment | None
    over: Moment | None

    @property
    def place(self) -> dict[str, Any]:
        """It, for the places of a statement."""
        return {"queue": self.queue, "kind": self.kind, "mode": self.mode, "part": self.part}

    @property
    def exclusive(self) -> bool:
        """Whether its jobs have keys of which one is held at a time."""
        return self.mode % 2 == 1

    @property
    def opens(self) -> Moment:
        """When something in it can be claimed."""
        return NEVER if self.head is None else max(self.head, self.back)


class Held:
    """The held jobs of some kinds, and those that a walk has chosen."""

    def __init__(self, rows: Sequence[Row] = ()) -> None:
        self._count: Counter[str] = Counter()
        self._keys: defaultdict[str, set[str]] = defaultdict(set)
        for kind, alone_key in rows:
            self.add(kind, alone_key)

    def add(self, kind: str, alone_key: str | None) -> None:
        """One more is held."""
        self._count[kind] += 1
        if alone_key is not None:
            self._keys[kind].add(alone_key)

    def keys(self, kind: str) -> set[str]:
        """The keys of the held jobs of a kind."""
        return self._keys[kind]

    def room(self, lane: LaneHead) -> int:
        """How many more jobs of a lane may be held."""
        return max(0, lane.mode // 2 - self._count[lane.kind]) if lane.mode > 1 else NEVER


class Chosen(NamedTuple):
    """What is to be taken: jobs with keys by their ids, and of each other lane how many."""

    ids: list[int]
    first: Mapping[LaneHead, int]

    @property
    def something(self) -> bool:
        """Whether there is anything to be taken."""
        return bool(self.ids) or any(self.first.values())


def walk(
    statements: Statements, lanes: Sequence[LaneHead], held: Held, *, now: Moment, limit: int, rank: Mapping[str, int]
) -> Steps[Chosen]:
    """Walk along the due jobs of lanes, the queues in the order of their `rank`, and choose up to `limit`."""
    lines = [_Line(n, lane) for n, lane in enumerate(lanes)]
    yield from _read(statements, lines, held, now=now, limit=limit)
    heap = [line.first(rank) for line in lines if line.places]
    heapify(heap)
    ids: list[int] = []
    first: Counter[LaneHead] = Counter()
    while heap and len(ids) + first.total() < limit:
        *_, n = heappop(heap)
        line, lane = lines[n], lines[n].lane
        _, id, alone_key = line.places.popleft()
        if held.room(lane) == 0:
            continue  # and so are all that follow in the lane
        if alone_key not in held.keys(lane.kind):
            held.add(lane.kind, alone_key)
            if lane.exclusive:
                ids.append(id)
            else:
                first[lane] += 1
        if not line.places and line.goes_on:
            yield from _read(statements, [line], held, now=now, limit=limit)
        if line.places:
            heappush(heap, line.first(rank))
    return Chosen(ids, first)


class _Line:
    """The due jobs of a lane, as far as they were read.

    Attributes:
        places: Due, id and alone_key of the next ones.
        behind: The due and id of the last one read.
        goes_on: Whether there may be more.
    """

    def __init__(self, number: int, lane: LaneHead) -> None:
        self.number = number
        self.lane = lane
        self.places: deque[tuple[Moment, int, str | None]] = deque()
        self.behind: tuple[Moment, int] = (-NEVER, 0)
        self.goes_on = True

    def first(self, rank: Mapping[str, int]) -> tuple[int, Moment, int, int]:
        """The place of its next job in the whole line, and its own number."""
        due, id, _ = self.places[0]
        return rank.get(self.lane.queue, 0), due, id, self.number

    def asks(self, held: Held, *, now: Moment, limit: int) -> dict[str, Any]:
        """What to read next."""
        exclusive = self.lane.exclusive
        return {
            **self.lane.place,
            "lane": self.number,
            "now": now,
            "after_due": self.behind[0],
            "after_id": self.behind[1],
            # With a null in it, the list is none that is empty, which SQL does not know.
            "busy": [None, *(held.keys(self.lane.kind) if exclusive else ())],
            "limit": DEEPER * limit if exclusive else min(limit, held.room(self.lane)),
        }


def _read(statements: Statements, lines: Sequence[_Line], held: Held, *, now: Moment, limit: int) -> Steps[None]:
    """Read on in some lines, those left out whose lanes are full."""
    lines = [line for line in lines if held.room(line.lane)]
    if not lines:
        return
    asked = {line.number: line.asks(held, now=now, limit=limit) for line in lines}
    got = yield Call(statements["claim.line"], {"rows": list(asked.values())})
    by_number = {line.number: line for line in lines}
    for number, *place in got.rows:
        by_number[number].places.append((place[0], place[1], place[2]))
    for line in lines:
        line.goes_on = len(line.places) == asked[line.number]["limit"]
        if line.places:
            line.behind = line.places[-1][:2]

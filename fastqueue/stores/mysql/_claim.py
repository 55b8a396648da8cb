"""The claim: look without a lock, lock the gates of limited kinds and walk, then lock what was chosen and take it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from fastqueue.errors import StoreUnavailable
from fastqueue.job import Moment
from fastqueue.store import Claim
from fastqueue.stores._rows import CLAIMED, NEVER, Row, claimed
from fastqueue.stores._sql import Call, Steps
from fastqueue.stores.mysql._access import Access
from fastqueue.stores.mysql._connections import contended
from fastqueue.stores.mysql._walk import Chosen, Held, LaneHead, walk

__all__ = ["claim"]

PORTION = 500
"""How many jobs whose hold is over go back to their lanes in one transaction."""

TRIES = 4
"""How often a claim looks when others take before it what it has seen."""

PAUSE = 0.004
"""Seconds: the longest pause before it looks again."""

_ID, _QUEUE, _RUN_AT = (CLAIMED.index(name) for name in ("id", "queue", "run_at"))


@dataclass(frozen=True, slots=True)
class Request:
    """What a claim is asked for.

    Attributes:
        gated: Whether to wait for the gates of limited kinds; if not, only jobs that nothing limits are taken.
        tidied: Whether jobs whose hold is over have been put back, but those that others are at.
    """

    now: Moment
    token: int
    limit: int
    queues: tuple[str, ...] | None
    kinds: frozenset[str]
    gated: bool = True
    tidied: bool = False

    @property
    def rank(self) -> dict[str, int]:
        """The place of each queue in their order."""
        return {queue: place for place, queue in enumerate(self.queues or ())}


class Taken(NamedTuple):
    """What came of a look.

    Attributes:
        rows: The jobs taken, in their order.
        seen: Whether it saw something to take.
        over: Kinds that have holds which are over; nothing was taken then.
        next_due: When the next job of its lanes comes due.
    """

    rows: Sequence[Row] = ()
    seen: bool = False
    over: Sequence[str] = ()
    next_due: Moment = NEVER


async def claim(
    access: Access, now: Moment, *, token: int, limit: int, queues: Sequence[str] | None, kinds: Collection[str]
) -> Claim:
    """Take due jobs; see `Store.claim`."""
    request = Request(now, token, limit, None if queues is None else tuple(dict.fromkeys(queues)), frozenset(kinds))
    taken = Taken(seen=True)
    for tries_left in reversed(range(TRIES)):
        try:
            taken = await _try(access, request)
        except StoreUnavailable as error:
            if not contended(error) or not tries_left:
                raise
            # Whoever has locked a gate for so long may be frozen: it stops the limited jobs of its kinds, no others.
            request = replace(request, gated=False)
        if taken.rows or not taken.seen:
            break
        await asyncio.sleep(random.uniform(0, PAUSE))
    jobs = [claimed(row, token) for row in taken.rows]
    return Claim(jobs, taken.next_due if len(jobs) < limit and taken.next_due < NEVER else None)


async def _try(access: Access, request: Request) -> Taken:
    claims = access.here.claims
    taken = await access.once(claims, partial(_take, access, request))
    if not taken.over:
        return taken
    while await access.together(claims, partial(_put_back, access, taken.over, request.now)) == PORTION:
        pass
    return await access.once(claims, partial(_take, access, replace(request, tidied=True)))


def _take(access: Access, request: Request) -> Steps[Taken]:
    """One try, in a transaction: each statement sees what was committed before it."""
    statements, now = access.statements, request.now
    got = yield Call(
        statements["claim.look"],
        {
            "now": now,
            "kinds": sorted(request.kinds),
            "everywhere": request.queues is None,
            "queues": [*(request.queues or [""])],
        },
    )
    lanes = [LaneHead(*row) for row in got.rows]
    over = {lane.kind for lane in lanes if lane.over is not None and lane.over <= now}
    if over and not request.tidied:
        return Taken(over=sorted(over))
    due = [lane for lane in lanes if lane.opens <= now and (request.gated or not lane.mode)]
    next_due = min((lane.opens for lane in lanes if lane.opens > now), default=NEVER)
    if not due:
        return Taken(next_due=next_due)
    chosen = yield from _choose(access, request, due)
    rows = yield from _lock(access, request, chosen)
    if rows:
        ids = [row[_ID] for row in rows]
        yield Call(statements["claim.take"], {"ids": sorted(ids), "now": now, "token": request.token})
    if len(rows) < request.limit:
        later = yield Call(statements["claim.later"], {"rows": [{**lane.place, "now": now} for lane in due]})
        next_due = min(next_due, *(due for (due,) in later.rows), NEVER)
    return Taken(rows, seen=bool(chosen.ids) or any(chosen.first.values()), next_due=next_due)


def _choose(access: Access, request: Request, due: list[LaneHead]) -> Steps[Chosen]:
    """What to take of some lanes that have due jobs."""
    statements, now, limit = access.statements, request.now, request.limit
    limited = sorted({lane.kind for lane in due if lane.mode})
    held = Held()
    if limited:
        gates = yield Call(statements["claim.gates"], {"kinds": limited})
        back = {kind for kind, until in gates.rows if until > now}
        due = [lane for lane in due if lane.kind not in back]
        rows = yield Call(statements["claim.held"], {"kinds": limited, "now": now})
        held = Held(rows.rows)
    if len(due) == 1 and not due[0].exclusive:
        return Chosen([], {due[0]: min(limit, held.room(due[0]))})
    return (yield from walk(statements, due, held, now=now, limit=limit, rank=request.rank))


def _lock(access: Access, request: Request, chosen: Chosen) -> Steps[list[Row]]:
    """Lock what was chosen, pass by what others have locked, and put it in order."""
    statements, now, rank = access.statements, request.now, request.rank
    rows: list[Row] = []
    if chosen.ids:
        got = yield Call(statements["claim.lock_these"], {"ids": sorted(chosen.ids), "now": now})
        rows += got.rows
    places = [{**lane.place, "now": now, "limit": number} for lane, number in chosen.first.items() if number]
    if places:
        got = yield Call(statements["claim.lock_first"], {"rows": places})
        rows += got.rows
    return sorted(rows, key=lambda row: (rank.get(row[_QUEUE], 0), row[_RUN_AT], row[_ID]))


def _put_back(access: Access, kinds: Sequence[str], now: Moment) -> Steps[int]:
    """Let jobs wait again whose hold is over; answer how many. In a transaction of its own, before any gate."""
    got = yield Call(access.statements["claim.lost"], {"kinds": list(kinds), "now": now, "portion": PORTION})
    ids = sorted(id for (id,) in got.rows)
    if ids:
        yield Call(access.statements["claim.free"], {"ids": ids})
    return len(ids)

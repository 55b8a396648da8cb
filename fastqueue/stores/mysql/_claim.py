"""The claim: look without a lock, lock the gates of limited kinds and walk, then lock what was chosen and take it.

A gate lets one claim through at a time, so whoever sees without it that the kind is full does not come to it, and
whoever does leaves at once: what can be asked before or after is not asked meanwhile.
"""

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
from fastqueue.stores.mysql._connections import contended, kept_waiting
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
        contended: Whether it saw something to take, and others were at it.
        over: Kinds that have holds which are over; nothing was taken then.
        shut: The lanes that have something due, if nothing in them could be taken.
        next_due: When the first job of the other lanes comes due.
    """

    rows: Sequence[Row] = ()
    contended: bool = False
    over: Sequence[str] = ()
    shut: Sequence[LaneHead] = ()
    next_due: Moment = NEVER


async def claim(
    access: Access, now: Moment, *, token: int, limit: int, queues: Sequence[str] | None, kinds: Collection[str]
) -> Claim:
    """Take due jobs; see `Store.claim`."""
    request = Request(now, token, limit, None if queues is None else tuple(dict.fromkeys(queues)), frozenset(kinds))
    for tries_left in reversed(range(TRIES)):
        try:
            taken = await _try(access, request)
        except StoreUnavailable as error:
            if not contended(error) or not tries_left:
                raise
            # Whoever has locked a gate for so long may be frozen: it stops the limited jobs of its kinds, no others.
            request = replace(request, gated=request.gated and not kept_waiting(error))
        else:
            if not taken.contended:
                return Claim([claimed(row, token) for row in taken.rows], await _next_due(access, taken, now))
        await asyncio.sleep(random.uniform(0, PAUSE))
    return Claim([])


async def _try(access: Access, request: Request) -> Taken:
    claims = access.here.claims
    taken = await access.once(claims, partial(_take, access, request))
    if not taken.over:
        return taken
    while await access.together(claims, partial(_put_back, access, taken.over, request.now)) == PORTION:
        pass
    return await access.once(claims, partial(_take, access, replace(request, tidied=True)))


async def _next_due(access: Access, taken: Taken, now: Moment) -> Moment | None:
    """When the next job comes due, for a caller that got none and would wait."""
    if taken.rows:
        return None
    first = taken.next_due
    if taken.shut:
        first = min(first, await access.together(access.here.claims, partial(_later, access, taken.shut, now)))
    return first if first < NEVER else None


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
    due = [lane for lane in lanes if lane.opens <= now]
    next_due = min((lane.opens for lane in lanes if lane.opens > now), default=NEVER)
    may = yield from _ungated(access, request, due)
    if not may:
        return Taken(shut=due, next_due=next_due)
    chosen = yield from _choose(access, request, may)
    rows = yield from _lock(access, request, chosen)
    if not rows:
        return Taken(contended=chosen.something, shut=due, next_due=next_due)
    ids = sorted(row[_ID] for row in rows)
    yield Call(statements["claim.take"], {"ids": ids, "now": now, "token": request.token})
    return Taken(rows)


def _later(access: Access, lanes: Sequence[LaneHead], now: Moment) -> Steps[Moment]:
    """When the first job of some lanes is due that is not yet."""
    got = yield Call(access.statements["claim.later"], {"rows": [{**lane.place, "now": now} for lane in lanes]})
    return min((due for (due,) in got.rows), default=NEVER)


def _ungated(access: Access, request: Request, lanes: Sequence[LaneHead]) -> Steps[list[LaneHead]]:
    """Those of some lanes in which there may be something to take, as far as is seen without their gates."""
    if not request.gated:
        return [lane for lane in lanes if not lane.mode]
    held = yield from _held(access, request, lanes)
    return [lane for lane in lanes if held.room(lane)]


def _choose(access: Access, request: Request, due: list[LaneHead]) -> Steps[Chosen]:
    """What to take of some lanes that have due jobs, the gates of the limited ones locked."""
    statements, now, limit = access.statements, request.now, request.limit
    if limited := _limited(due):
        gates = yield Call(statements["claim.gates"], {"kinds": limited})
        back = {kind for kind, until in gates.rows if until > now}
        due = [lane for lane in due if lane.kind not in back]
    held = yield from _held(access, request, due)
    if len(due) == 1 and not due[0].exclusive:
        return Chosen([], {due[0]: min(limit, held.room(due[0]))})
    return (yield from walk(statements, due, held, now=now, limit=limit, rank=request.rank))


def _held(access: Access, request: Request, lanes: Sequence[LaneHead]) -> Steps[Held]:
    """What is held of the kinds that are limited in some lanes."""
    if not (limited := _limited(lanes)):
        return Held()
    got = yield Call(access.statements["claim.held"], {"kinds": limited, "now": request.now})
    return Held(got.rows)


def _limited(lanes: Sequence[LaneHead]) -> list[str]:
    return sorted({lane.kind for lane in lanes if lane.mode})


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

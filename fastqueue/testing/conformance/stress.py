"""Many claimers at once with everything that can limit a job, checked after every claim.

Time is a number that every step moves on, so holds run out while others claim; no clock is looked at. A claimer may
so be late with its moment, as one with a slow clock is.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any, TypeAlias

from fastqueue.job import Claimed, Moment
from fastqueue.outcome import Settlement
from fastqueue.store import Keep, Store
from fastqueue.testing.conformance.clause import clause
from fastqueue.testing.conformance.stage import MINUTE, SECOND, T0, Asks, Stage, job
from fastqueue.testing.conformance.walk import held_within_limits

__all__ = ["StressClauses"]

_Kinds: TypeAlias = dict[str, list[Asks]]

_KINDS: _Kinds = {
    "free": [{}],
    "one": [{"at_once": 1}],
    "three": [{"at_once": 3}],
    "alone": [{"alone_key": key} for key in "abc"],
    "both": [{"at_once": 2, "alone_key": key} for key in "abc"],
    "mixed": [{"at_once": limit} for limit in (0, 1, 3)],
}

_TURNS = 400
"""Turns for each job after which one that has not ended is starved; a round takes about five."""


class StressClauses:
    @clause(Keep.AT_ONCE, Keep.ONE_AT_A_TIME, run="random")
    async def test_stress_of_8_claimers_breaks_no_limit_and_starves_no_job(self, on: Stage) -> None:
        """B7, O5, A5: whatever happens at once, limits hold after every claim, and each job ends once."""
        await _stress(on, claimers=8, rounds=2 if on.way == "short" else 25)

    @clause(Keep.AT_ONCE, Keep.ONE_AT_A_TIME, run="random")
    async def test_stress_of_16_claimers_breaks_no_limit_and_starves_no_job(self, on: Stage) -> None:
        """B7, O5, A5: whatever happens at once, limits hold after every claim, and each job ends once."""
        await _stress(on, claimers=16, rounds=1 if on.way == "short" else 25)


async def _stress(on: Stage, claimers: int, rounds: int) -> None:
    stores = [await on.another() for _ in range(claimers)]
    for seed in range(rounds):
        round = _Round(on, Random(seed))
        await round.push(on.store, 40 + 20 * (seed % 5))
        await asyncio.gather(*(round.work(store, Random(seed * claimers + n)) for n, store in enumerate(stores)))
        assert round.ended == Counter(round.pushed), f"round {seed}: a job ended twice, or never"
        assert await on.stored() == []


class _Round:
    """One crowd of jobs until all have ended."""

    def __init__(self, on: Stage, random: Random) -> None:
        self._on, self._random = on, random
        self._queues = ["slow", "quick"] if Keep.QUEUES in on.store.keeps else ["default"]
        self._later = 20  # jobs that are pushed while others are claimed
        self._turns = 0
        self.now: Moment = T0
        self.pushed: set[int] = set()
        self.ended: Counter[int] = Counter()

    async def push(self, store: Store, count: int, **asks: Any) -> None:
        """Push jobs of all sorts."""
        random = self._random
        kinds = random.choices(list(_KINDS), k=count)
        jobs = [
            job(
                at=self.now + random.randrange(20) * SECOND,
                kind=kind,
                queue=random.choice(self._queues),
                **random.choice(_KINDS[kind]),
                **asks,
            )
            for kind in kinds
        ]
        self.pushed.update(each.id for each in await store.push(jobs, now=self.now))

    async def work(self, store: Store, random: Random) -> None:
        """One claimer, until no job is left."""
        lost: list[Claimed] = []
        while self._later or len(self.ended) < len(self.pushed):
            self._turns += 1
            assert self._turns < _TURNS * len(self.pushed), f"jobs {self.pushed - set(self.ended)} were not claimed"
            self.now += random.randrange(3 * SECOND)
            if self._later and random.random() < 0.3:
                self._later -= 1
                await self.push(store, 1, **self._key(random))
            limit, queues = random.choice([1, 2, 3, 10, 50]), random.choice([None, self._queues, self._queues[::-1]])
            claimed = await self._on.claim(self.now, limit=limit, kinds=_KINDS, queues=queues, store=store)
            if claimed:
                assert held_within_limits(await store.jobs(state="running", now=T0, limit=500), MINUTE) is None
            random.shuffle(claimed)
            for each in claimed:
                await self._end(store, each, random, lost)
            if lost and random.random() < 0.2:
                await self._done(store, lost.pop())

    def _key(self, random: Random) -> Asks:
        keeps = self._on.store.keeps
        key = random.choice(["a", "b", None]) if Keep.KEYS in keeps else None
        return {"unique_key": key, "latest": Keep.LATEST in keeps and random.random() < 0.5}

    async def _end(self, store: Store, claimed: Claimed, random: Random, lost: list[Claimed]) -> None:
        chance = random.random()
        if chance < 0.70:
            await self._done(store, claimed)
        elif chance < 0.82:
            await store.settle([Settlement.retry(claimed, at=self.now + random.randrange(20_000), error="it broke")])
        elif chance < 0.85:
            await store.give_back([claimed])
        elif chance < 0.88 and store.holds is not None:
            await store.holds.hold_back(claimed, until=self.now + random.randrange(10 * SECOND))
        elif chance < 0.94:
            lost.append(claimed)

    async def _done(self, store: Store, claimed: Claimed) -> None:
        if (await store.settle([Settlement.done(claimed)])) == [True]:
            self.ended[claimed.id] += 1

"""Random histories, played on the store and on the memory store beside it: every answer has to be the same.

What a claim is to find is worked out a third time, by the plain walk over all jobs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any, TypeAlias, TypeVar

from fastqueue.job import Claimed, Moment, NewJob, StoredJob
from fastqueue.outcome import Settlement
from fastqueue.store import Keep, Store
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing.conformance.clause import clause
from fastqueue.testing.conformance.stage import HOUR, MINUTE, SECOND, T0, Stage, job
from fastqueue.testing.conformance.walk import walk

__all__ = ["History", "ModelClauses"]

R = TypeVar("R", Claimed, Settlement, StoredJob)

Step: TypeAlias = Callable[[], Awaitable[None]]

_QUEUES = ("default", "slow", "quick")
_KINDS = ("free", "one", "three", "alone", "mixed", "unclaimed")
_AT_ONCE = {"one": (1,), "three": (3,), "mixed": (0, 1, 2, 3)}


class ModelClauses:
    @clause(run="random")
    async def test_a_random_history_goes_as_the_contract_says(self, on: Stage) -> None:
        """B1..X4: one claim equals the walk of the line that a single caller would make; every verb answers alike."""
        histories, steps = (6, 150) if on.way == "short" else (50, 400)
        for seed in range(histories):
            history = History(on, Random(seed))
            try:
                for _ in range(steps):
                    await history.step()
                    if history.steps % 20 == 0:
                        await history.compare()
                await history.compare()
            except AssertionError as error:
                raise AssertionError(f"history {seed}, step {history.steps}: {history.last}: {error}") from error
            await history.clear()


class History:
    """One history: what was pushed and claimed so far, and the steps that go on from there.

    Attributes:
        random: Where each step takes its choices from; it may be changed between steps.
        steps: How many steps there were.
        last: What the last one did.
    """

    def __init__(self, on: Stage, random: Random) -> None:
        self._on, self.random, self._store = on, random, on.store
        self._model = Stage(MemoryStore)
        self._ids: dict[int, int] = {}  # the model's id of each of the store's
        self._claims: list[Claimed] = []
        self._held_kinds: dict[str, Moment] = {}
        self._now: Moment = T0
        self._name = f"{random.random()}"
        self.steps = 0
        self.last: object = None
        self._choices: list[tuple[int, Step]] = [
            (5, self.push),
            (6, self.claim),
            (5, self.settle),
            (1, self.give_back),
            (1, self.renew),
            (1, self.prune),
            (2, self.pass_time),
        ]
        if on.store.schedules:
            self._choices.append((2, self.push_run))
        if on.store.holds:
            self._choices.append((1, self.hold_back))
        if on.store.failed:
            self._choices += [(2, self.run_again), (1, self.forget)]
        if on.store.throttles:
            self._choices.append((1, self.hit))

    async def step(self) -> None:
        """Do one thing, chosen by weight, on both."""
        await self.do(self._any)

    async def _any(self) -> None:
        weights = [weight for weight, _ in self._choices]
        await self.random.choices([step for _, step in self._choices], weights)[0]()

    async def do(self, step: Step) -> None:
        """Do one thing on both, a little later than the last."""
        self.steps += 1
        self._now += self.random.choice([0, 0, 1, self.random.randrange(10 * SECOND)])
        await step()

    async def compare(self) -> None:
        """All that is kept has to be the same on both."""
        self.last = "what is kept"
        assert await self._kept(self._store) == await self._kept(self._model.store)
        counts, expected = await self._store.counts(self._now), await self._model.store.counts(self._now)
        assert sorted(map(str, counts)) == sorted(map(str, expected))
        if self._store.failed:
            found = [self._translated(each) for each in await self._on.failures.page(limit=999)]
            assert found == await self._model.failures.page(limit=999)
        if self._store.schedules:
            recorded = await self._on.schedules.recorded()
            assert {name: at for name, at in recorded.items() if name.endswith(self._name)} == (
                await self._model.schedules.recorded()
            )

    async def clear(self) -> None:
        """Leave nothing to the next history."""
        for _ in range(2):  # the first claims free what waits for a key, the second end the holds of kinds
            self._now += HOUR
            while claimed := await self._on.claim(self._now, limit=99, kinds=_KINDS):
                await self._store.settle([Settlement.done(each) for each in claimed])
        await self._store.prune(self._now, failed_before=self._now)
        assert await self._on.stored() == []

    async def push(self) -> None:
        jobs = [self._some_job() for _ in range(self.random.choice([1, 1, 2, 5]))]
        self.last = ("push", jobs)
        pushed = await self._store.push(jobs, now=self._now)
        for ours, theirs in zip(pushed, await self._model.store.push(jobs, now=self._now), strict=True):
            assert ours.new == theirs.new
            assert self._ids.setdefault(ours.id, theirs.id) == theirs.id

    def _some_job(self) -> NewJob:
        random, keeps = self.random, self._store.keeps
        kind = random.choice(_KINDS)
        key = random.choice(["u1", "u2", None]) if Keep.KEYS in keeps else None
        return job(
            random.randrange(1_000),
            self._some_time(),
            kind=kind,
            queue=random.choice(_QUEUES) if Keep.QUEUES in keeps else "default",
            hold_ms=random.choice([20 * SECOND, MINUTE, 5 * MINUTE]) if Keep.TIMES in keeps else MINUTE,
            unique_key=key,
            latest=Keep.LATEST in keeps and random.random() < 0.5,
            alone_key=random.choice("ab") if kind in ("alone", "three") and Keep.ONE_AT_A_TIME in keeps else None,
            at_once=random.choice(_AT_ONCE.get(kind, (0,))) if Keep.AT_ONCE in keeps else 0,
            carried=random.choice([None, '{"t":"1"}']) if Keep.CARRIED in keeps else None,
            options=random.choice([None, "{}"]),
        )

    def _some_time(self) -> Moment:
        return self._now + self.random.choice([0, 0, -1, 1, -SECOND, 5 * SECOND, MINUTE])

    async def push_run(self) -> None:
        schedule = self.random.choice("rs") + self._name
        run = self._some_job()._replace(schedule=schedule)
        self.last = ("push_run", schedule, run)
        ours = await self._on.schedules.push_run(schedule, run, now=self._now)
        assert ours == await self._model.schedules.push_run(schedule, run, now=self._now)
        if ours.pushed:
            known = set(self._ids)
            [id] = [each.id for each in await self._on.stored(self._now) if each.id not in known]
            self._ids[id] = (await self._all(self._model.store))[-1].id

    async def claim(self) -> None:
        random = self.random
        how: dict[str, Any] = {
            "limit": random.choice([1, 2, 3, 5, 12]),
            "queues": random.choice([None, random.sample(_QUEUES, 2), random.sample([*_QUEUES, "no"], 4)]),
            "kinds": random.choice([_KINDS[:-1], random.sample(_KINDS[:-1], 3)]),
        }
        if Keep.QUEUES not in self._store.keeps:
            how["queues"] = None
        self.last = ("claim", self._now, how)
        expected = walk(await self._on.stored(self._now), self._now, held_kinds=self._held_kinds, **how)
        token = self._on.token()
        found = (await self._store.claim(self._now, token=token, **how)).jobs
        assert [each.id for each in found] == expected
        assert [self._translated(each) for each in found] == (
            await self._model.store.claim(self._now, token=token, **how)
        ).jobs
        self._claims += found

    def _some_claims(self, *, stay: float = 0.5) -> list[Claimed]:
        """Some claims of now and of before; with the chance `stay` each may be chosen again."""
        random = self.random
        chosen = random.sample(self._claims[-40:], min(len(self._claims[-40:]), random.choice([1, 1, 3, 8])))
        self._claims = [each for each in self._claims if each not in chosen or random.random() < stay]
        return chosen

    async def settle(self) -> None:
        told = [self._some_settlement(each) for each in self._some_claims()]
        self.last = ("settle", told)
        ours = await self._store.settle(told)
        assert ours == await self._model.store.settle([self._translated(each) for each in told])

    def _some_settlement(self, claimed: Claimed) -> Settlement:
        match self.random.choice(["done", "done", "retry", "fail", "put back"]):
            case "done":
                return Settlement.done(claimed)
            case "retry":
                return Settlement.retry(claimed, at=self._some_time(), error=self.random.choice([None, self._error()]))
            case "fail":
                return Settlement.fail(claimed, at=self._some_minute(), error=self._error(), attempts=7)
            case _:
                return Settlement.put_back(claimed, at=self._some_time(), error=self._error(), free=True)

    def _error(self) -> str:
        return f"error of step {self.steps}"

    def _some_minute(self) -> Moment:
        """A whole minute before now, so that some are the same."""
        return (self._now // MINUTE - self.random.randrange(3)) * MINUTE

    async def give_back(self) -> None:
        claims = self._some_claims()
        self.last = ("give_back", claims)
        ours = await self._store.give_back(claims)
        assert ours == await self._model.store.give_back([self._translated(each) for each in claims])

    async def renew(self) -> None:
        claims, until = self._some_claims(stay=1), self._now + self.random.choice([SECOND, HOUR])
        self.last = ("renew", claims, until)
        ours = await self._store.renew(claims, now=self._now, until=until)
        theirs = await self._model.store.renew([self._translated(each) for each in claims], now=self._now, until=until)
        assert ours == theirs

    async def hold_back(self) -> None:
        for claimed in self._some_claims():
            until = self._now + self.random.choice([0, 5 * SECOND, 2 * MINUTE])
            self.last = ("hold_back", claimed, until)
            ours = await self._on.holds.hold_back(claimed, until=until)
            assert ours == await self._model.holds.hold_back(self._translated(claimed), until=until)
            self._held_kinds[claimed.kind] = max(until, self._held_kinds.get(claimed.kind, until))

    async def prune(self) -> None:
        before = self._some_minute()
        self.last = ("prune", self._now, before)
        ours = await self._store.prune(self._now, failed_before=before)
        assert ours == await self._model.store.prune(self._now, failed_before=before)

    async def pass_time(self) -> None:
        ends = [each.held_until for each in self._claims]
        self._now = max(self._now, self.random.choice([self._now + MINUTE, *ends[-3:], *self._held_kinds.values()]))

    async def run_again(self) -> None:
        ids, at = await self._some_ids(), self._some_time()
        self.last = ("run_again", ids, at)
        ours = await self._on.failures.run_again(ids, at=at)
        assert ours == await self._model.failures.run_again([self._ids[id] for id in ids], at=at)

    async def forget(self) -> None:
        ids = await self._some_ids()
        self.last = ("forget", ids)
        ours = await self._on.failures.forget(ids)
        assert ours == await self._model.failures.forget([self._ids[id] for id in ids])

    async def _some_ids(self) -> list[int]:
        """The ids of some failed jobs, and of some others."""
        failed = [each.id for each in await self._on.failures.page(limit=9)]
        others = self.random.sample(sorted(self._ids), min(len(self._ids), 2))
        return list(dict.fromkeys([*self.random.sample(failed, min(len(failed), 2)), *others]))

    async def hit(self) -> None:
        key, window = self.random.choice("tv") + self._name, self.random.choice([SECOND, MINUTE])
        self.last = ("hit", key, window)
        ours, theirs = self._on.throttles, self._model.throttles
        assert await ours.tries(key, now=self._now) == await theirs.tries(key, now=self._now)
        hits = await ours.hit(key, now=self._now, window_ms=window)
        assert hits == await theirs.hit(key, now=self._now, window_ms=window)

    async def _all(self, store: Store) -> Sequence[StoredJob]:
        return await store.jobs(now=self._now, limit=10_000)

    async def _kept(self, store: Store) -> list[StoredJob]:
        """All jobs, with the ids of the model; whether a hold that is over is still noted does not matter."""
        jobs = await self._all(store)
        if store is self._store:
            jobs = [self._translated(each) for each in jobs]
        return [replace(each, held_ms=None) if (each.held_ms or 0) <= self._now else each for each in jobs]

    def _translated(self, job: R) -> R:
        """A job or settlement with the model's id."""
        id = self._ids[job.id]
        return replace(job, id=id) if isinstance(job, StoredJob) else job._replace(id=id)

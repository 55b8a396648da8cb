"""A small world made from a seed: instances of an app on one store, and everything that can go wrong between them.

The store is the memory store, so each verb has its effect in one step; what is simulated is the line to it. A call
takes its time on the way there and back, fails before its effect or after it, or hangs until the line is up again.
Instances are started, stopped, cut off and killed. A ledger outside the queue is kept by the handlers, and decides.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from fastqueue import Defaults, Kind, Permanent, Queue, Run, Unique, constant, every
from fastqueue.errors import StoreUnavailable
from fastqueue.job import Claimed, Moment, NewJob, Pushed
from fastqueue.outcome import Settlement
from fastqueue.store import Claim, Holds, RunPushed, Schedules
from fastqueue.stores._kept import Kept
from fastqueue.stores.memory import MemoryStore
from tests.faults.virtual import VirtualLoop

__all__ = ["World"]

R = TypeVar("R")

AT_ONCE = 2
ATTEMPTS = 4
HOLD = 20.0
GRACE = 3.0
STOP_BOUND = GRACE + 10 + 10 + 5 + 10 + 1
"""Grace, the claim in flight, the give-back, the tail and the last settlement, each with its own bound."""


@dataclass
class Started:
    """A handler that was called: one line of the ledger."""

    task: Task
    kind: str
    attempt: int
    instance: Instance
    at: float
    ended: float | None = None
    how: str = "runs"

    def __str__(self) -> str:
        ended = "" if self.ended is None else f"-{self.ended:.3f}"
        return f"{self.kind} {self.task.number} attempt {self.attempt}, {self.how} at {self.at:.3f}{ended}"


@dataclass
class Ledger:
    """What really happened, as those tell it who did it.

    Attributes:
        pushed: The numbers of the jobs that a push said are kept.
        started: Every call of a handler.
        slots: Every run that a schedule pushed, with its moment.
    """

    pushed: set[int] = field(default_factory=set)
    started: list[Started] = field(default_factory=list)
    slots: list[tuple[str, Moment]] = field(default_factory=list)


def now() -> float:
    return asyncio.get_running_loop().time()


class Line(MemoryStore):
    """One instance's line to the store that all share."""

    def __init__(self, world: World, instance: Instance) -> None:
        super().__init__()
        self._share(world.kept)
        self._world, self._instance = world, instance
        self.slots = world.ledger.slots
        self.sent: set[asyncio.Task[Any]] = set()
        self.up = asyncio.Event()
        self.up.set()
        shared = MemoryStore()
        shared._share(world.kept)
        self._shared = shared
        self.schedules = _Schedules(self, cast(Schedules, shared.schedules))
        self.holds = _Holds(self, cast(Holds, shared.holds))

    async def through(self, call: Callable[[], Awaitable[R]]) -> R:
        """Do a call on the shared store, with what happens to it on the way there and on the way back."""
        sent = asyncio.create_task(self._there_and_back(call), context=Context())
        self.sent.add(sent)
        sent.add_done_callback(self._arrived)
        try:
            return await asyncio.shield(sent)
        except asyncio.CancelledError:
            # Who gives up waiting does not know: it may be lost, or arrive all the same, however late.
            if self._world.random.random() < 0.5:
                sent.cancel()
            raise

    def _arrived(self, sent: asyncio.Task[Any]) -> None:
        self.sent.discard(sent)
        if not sent.cancelled():
            sent.exception()

    async def _there_and_back(self, call: Callable[[], Awaitable[R]]) -> R:
        await self._way("the store cannot be reached")
        answer = await call()
        await self._way("the answer was lost")
        return answer

    async def _way(self, fault: str) -> None:
        chance = self._world.random
        await asyncio.sleep(chance.choice([0, 0, 0.001, 0.02, 0.3 * chance.random()]))
        if not self.up.is_set():
            self._instance.harmed()
            await self.up.wait()
        if self._instance.dead:
            await self._instance.buried.wait()
            raise StoreUnavailable("its process is gone")
        if chance.random() < self._world.faults:
            self._instance.harmed()
            raise StoreUnavailable(fault)

    async def push(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        return await self.through(lambda: self._shared.push(jobs, now=now))

    async def claim(
        self, now: Moment, *, token: int, limit: int, queues: Sequence[str] | None, kinds: Collection[str]
    ) -> Claim:
        return await self.through(lambda: self._shared.claim(now, token=token, limit=limit, queues=queues, kinds=kinds))

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        return await self.through(lambda: self._shared.settle(settlements))

    async def give_back(self, jobs: Sequence[Claimed]) -> list[bool]:
        return await self.through(lambda: self._shared.give_back(jobs))

    async def renew(self, jobs: Sequence[Claimed], *, now: Moment, until: Moment) -> list[bool]:
        return await self.through(lambda: self._shared.renew(jobs, now=now, until=until))

    async def prune(self, now: Moment, *, failed_before: Moment) -> int:
        return await self.through(lambda: self._shared.prune(now, failed_before=failed_before))


class _Schedules(Schedules):
    def __init__(self, line: Line, shared: Schedules) -> None:
        self._line, self._shared = line, shared

    async def push_run(self, schedule: str, job: NewJob, *, now: Moment) -> RunPushed:
        async def push() -> RunPushed:
            run = await self._shared.push_run(schedule, job, now=now)
            if run.pushed:
                self._line.slots.append((schedule, job.run_at))
            return run

        return await self._line.through(push)

    async def recorded(self) -> dict[str, Moment]:
        return await self._line.through(self._shared.recorded)

    async def tell_zone_data(self, version: str, *, now: Moment) -> dict[str, Moment]:
        return await self._line.through(lambda: self._shared.tell_zone_data(version, now=now))


class _Holds(Holds):
    def __init__(self, line: Line, shared: Holds) -> None:
        self._line, self._shared = line, shared

    async def hold_back(self, job: Claimed, *, until: Moment) -> bool:
        return await self._line.through(lambda: self._shared.hold_back(job, until=until))


class Sometimes:
    """A limiter that lets two of three go, and is broken now and then."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def ask(self, kind: str) -> float:
        chance = self._world.random.random()
        if chance < self._world.faults:
            raise ConnectionError("the limiter is down")
        return 0 if chance < 0.7 else 2 * chance


class Task(BaseModel):
    """What the jobs are pushed with: their number in the ledger, and what makes two of them the same."""

    number: int
    key: str = ""


class Instance:
    """A process of the app: a queue with its worker, and its line to the store.

    Attributes:
        dead: It was killed: its handlers and calls go no further.
        buried: Set at the end of the world, so that no task of the dead is left in this process.
    """

    def __init__(self, world: World, *, schedules: bool = True) -> None:
        self.world = world
        self.dead = False
        self.buried = asyncio.Event()
        self.line = Line(world, self)
        self._harms: list[float] = []
        defaults = Defaults(attempts=ATTEMPTS, backoff=constant(1), timeout=8, margin=HOLD / 2, hold_at_most=HOLD / 2)
        self.queue = Queue(self.line, workers=3, grace=GRACE, defaults=defaults, clock=world.loop.now)
        self.kinds = {
            "quick": self._kind("quick"),
            "few": self._kind("few", at_once=AT_ONCE),
            "alone": self._kind("alone", unique=Unique(by="key", one_at_a_time=True)),
            "rated": self._kind("rated", rate=Sometimes(world)),
        }
        report = self._kind("report")
        if schedules:
            report.schedule(every(30), Task(number=0))
        self.run = asyncio.create_task(self.queue.run(), context=Context())

    def _kind(self, name: str, **options: Any) -> Kind[Task]:
        @self.queue.handle(name, **options)
        async def handler(task: Task, run: Run) -> None:
            started = Started(task, name, run.attempt, self, now())
            self.world.ledger.started.append(started)
            try:
                await self._work()
            except asyncio.CancelledError:
                started.how = "cancelled"
                raise
            except Exception:
                started.how = "failed"
                raise
            else:
                started.how = "done"
            finally:
                started.ended = now()

        return handler

    async def _work(self) -> None:
        """What a handler does: quick or slow, to its end or not, and now and then deaf to its cancellation."""
        chance = self.world.random
        lasts = chance.choice([0, 0, 0.01, 0.5, 2, 4 * chance.random(), 12 * chance.random()])
        try:
            await asyncio.sleep(lasts)
        except asyncio.CancelledError:
            if chance.random() > 0.1:
                raise
            self.harmed()
            await asyncio.sleep(10 * chance.random())
        if self.dead:
            await asyncio.Event().wait()
        match chance.random():
            case low if low < 0.15:
                raise ValueError("it broke")
            case low if low < 0.18:
                raise Permanent("it is no use")
            case _:
                return

    def harmed(self) -> None:
        """From here on it cannot be blamed for running a job that another claim has, or has had."""
        self._harms.append(now())

    def was_harmed(self, since: float, until: float) -> bool:
        return any(since <= harm <= until for harm in self._harms)

    def kill(self) -> None:
        self.harmed()
        self.dead = True

    async def cut(self) -> None:
        """Take its line down for a while; what was on its way arrives late."""
        self.line.up.clear()
        await asyncio.sleep(40 * self.world.random.random())
        self.line.up.set()

    async def stop(self) -> None:
        """Stop it as a server does, within the bound that it promises."""
        begun = now()
        self.run.cancel()
        with suppress(asyncio.CancelledError):
            await self.run
        await self.queue.close()
        if not self.dead:
            assert now() - begun <= STOP_BOUND, f"a stop took {now() - begun:.1f} s"


class World:
    """The instances, their store and the ledger.

    Args:
        seed: What everything random comes from.
        faults: How likely it is that the line fails a call, each way. 0: it never does, and nobody is killed or cut.
    """

    def __init__(self, seed: int, *, faults: float) -> None:
        self.random = random.Random(seed)
        self.faults = faults
        self.calm = faults == 0
        self.kept = Kept()
        self.ledger = Ledger()
        self.loop = cast(VirtualLoop, asyncio.get_running_loop())
        self.alive: list[Instance] = []
        self.killed: list[Instance] = []
        self._beside: list[tuple[Instance, asyncio.Task[None]]] = []
        self._numbers = count(1)

    async def live(self, steps: int) -> None:
        """Let things happen, then let everything come to its end, and look at what is left."""
        actions: list[tuple[int, Callable[[], object]]] = [
            (12, lambda: self._aside(self._some(), self._push)),
            (1, lambda: self._aside(self._some(), self._push_and_go)),
            (2, self._start),
            (2, lambda: self._aside(self._leaves(), Instance.stop)),
        ]
        if not self.calm:
            actions += [(1, self._kill), (2, lambda: self._aside(self._some(), Instance.cut))]
        for _ in range(steps):
            await asyncio.sleep(self.random.choice([0, 0.001, 0.3, 2 * self.random.random()]))
            if not self.alive:
                self._start()
            self.random.choices([action for _, action in actions], [weight for weight, _ in actions])[0]()
        await self._come_to_the_end()
        self._judge()

    def _some(self) -> Instance:
        return self.random.choice(self.alive)

    def _start(self) -> None:
        if len(self.alive) < 3:
            self.alive.append(Instance(self))

    def _leaves(self) -> Instance:
        instance = self._some()
        self.alive.remove(instance)
        return instance

    def _kill(self) -> None:
        instance = self._leaves()
        instance.kill()
        self.killed.append(instance)

    def _aside(self, instance: Instance, body: Callable[[Instance], Coroutine[Any, Any, None]]) -> None:
        self._beside.append((instance, asyncio.create_task(body(instance), context=Context())))

    async def _push(self, through: Instance) -> None:
        """Push one or several jobs; whether they are kept is known only when the push says so."""
        random = self.random
        tasks = [Task(number=next(self._numbers), key=random.choice("ab")) for _ in range(random.choice([1, 1, 5]))]
        kind = through.kinds[random.choice(sorted(through.kinds))]
        delay = random.choice([0, 0, 0, 5 * random.random()])
        with suppress(StoreUnavailable):
            pushed = await kind.push_many(tasks, delay=delay)
            self.ledger.pushed |= {task.number for task, answer in zip(tasks, pushed, strict=True) if answer.new}

    async def _push_and_go(self, through: Instance) -> None:
        """A request that its client has left: cancelled at any point of its push."""
        push = asyncio.create_task(self._push(through), context=Context())
        await asyncio.sleep(0.4 * self.random.random())
        push.cancel()
        with suppress(asyncio.CancelledError):
            await push

    # -- the end ---------------------------------------------------------------------------------------------------

    async def _come_to_the_end(self) -> None:
        """One healthy instance is left; in an hour at most nothing waits and nothing runs any more."""
        self.faults = 0
        for instance in self.alive:
            instance.line.up.set()
        await asyncio.gather(*(task for instance, task in self._beside if not instance.dead))
        await asyncio.gather(*(instance.stop() for instance in self.alive))
        last = Instance(self, schedules=False)
        async with asyncio.timeout(3600):
            while len(self.kept.rows) > len(self.kept.failed):  # noqa: ASYNC110 - no event tells of it
                await asyncio.sleep(1)
        await last.stop()
        for instance in self.killed:
            instance.buried.set()
        await asyncio.gather(*(instance.stop() for instance in self.killed))
        await asyncio.gather(*(task for _, task in self._beside))
        await asyncio.sleep(60)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks are left behind: {left}"

    def _judge(self) -> None:
        runs: dict[int, list[Started]] = {}
        for started in self.ledger.started:
            runs.setdefault(started.task.number, []).append(started)
        failed = {Task.model_validate_json(row.given.payload).number for row in self.kept.failed.values()}
        for number in self.ledger.pushed:
            assert number in failed or any(run.how == "done" for run in runs.get(number, [])), f"job {number} was lost"
        for number in set(runs) - {0}:
            self._judge_runs(runs[number])
        for kind, most in ("few", AT_ONCE), ("alone", 1):
            self._judge_limit([run for run in self.ledger.started if run.kind == kind], most)
        slots = [(schedule, at) for schedule, at in self.ledger.slots]
        assert len(slots) == len(set(slots)), "a schedule's slot has two jobs"

    def _judge_runs(self, runs: list[Started]) -> None:
        """What has run to its end runs again only when the store could not be told; two at once only after a harm."""
        assert len([run for run in runs if run.how == "failed"]) <= ATTEMPTS
        for first, then in pairwise(runs):
            unharmed = not first.instance.was_harmed(first.at, then.at)
            if unharmed:
                assert first.how != "done", f"{first} is run again: {then}"
                assert first.how != "runs", f"{first} was forgotten: {then}"
                assert (first.ended or 0) <= then.at, f"{first} still runs: {then}"

    def _judge_limit(self, runs: list[Started], most: int) -> None:
        """A limit holds over all instances that are not harmed: those may run what they no longer hold."""
        for run in runs:
            others = [
                other
                for other in runs
                if other.task.key == run.task.key or run.kind == "few"
                if other.at <= run.at and (other.ended is None or other.ended > run.at)
                if other is run or not other.instance.was_harmed(other.at, run.at)
            ]
            assert len(others) <= most, f"{len(others)} at once: {others}"

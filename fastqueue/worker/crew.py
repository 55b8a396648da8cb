"""The worker as a whole: the claimer, the runs, and how all of it stops."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from contextvars import Context
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from fastqueue.codec import error_text
from fastqueue.errors import StoreUnavailable
from fastqueue.job import Claimed, Moment
from fastqueue.outcome import Outcome, Settlement
from fastqueue.worker.beside import what_goes_on_beside
from fastqueue.worker.claim import LookAhead
from fastqueue.worker.run import Attempt, End, attempt_of, eager_task, extra, judge, line, perform
from fastqueue.worker.settle import SETTLE_BOUND, Settler, tell_on_fail
from fastqueue.worker.tick import Ticker, was_missed
from fastqueue.worker.wake import Wake
from fastqueue.worker.watch import Watch

if TYPE_CHECKING:
    from fastqueue.queue import Queue

__all__ = ["TAIL", "Worker"]

T = TypeVar("T")

log = logging.getLogger("fastqueue")

TAIL = 5.0
"""Seconds that cancelled handlers have to end."""

STALL = 0.05
"""Seconds that a claimed job may wait here while nothing starts; then it is given back."""

TURN = 0.002
"""Seconds of starting runs in one turn of the loop, so that a web server on the same loop stays quick."""

_LONGEST_PAUSE = 10.0


class Worker:
    """Runs a queue's jobs in this process.

    Attributes:
        running: The attempts whose handlers run now, never more than the queue's workers.
        claimed_at: When the store last answered a claim, on the queue's clock for durations; None: not yet.
        store_answers: Whether the last claim was answered.
        zone_data_elsewhere: Versions of the zone data, other than ours, that other instances work with.
    """

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.wake = Wake()
        self.running: set[Attempt] = set()
        self.claimed_at: float | None = None
        self.store_answers = True
        self.zone_data_elsewhere: set[str] = set()
        self.settler = Settler(queue, on_fail=self._on_fail, ended=self.wake.set)
        self._watch = Watch(self)
        self._ticker = Ticker(queue)
        self._ahead = LookAhead(queue.workers)
        self._backlog: deque[Attempt] = deque()
        self._last_words: deque[End] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._kinds = {kind.name for kind in queue.kinds.values() if kind.handler is not None}
        self._limiters = {kind.name: queue.limiter_of(kind) for kind in queue.kinds.values()}
        self._token = random.getrandbits(61) + 1
        self._loop = asyncio.get_running_loop()
        self._next_due: Moment | None = None
        self._stopping = False
        self._starting = self._booked = False
        self._stall: asyncio.TimerHandle | None = None
        self._moved_at = 0.0
        self._hungry = True
        self._busy_telling = 0

    # -- the claimer -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until cancelled, then stop in order."""
        root = self._task(self._work(), "fastqueue-worker")
        beside = what_goes_on_beside(self.queue, self.wake.set, self.zone_data_elsewhere)
        sides = [self._task(body, f"fastqueue-{name}") for name, body in beside.items()]
        try:
            await asyncio.shield(root)
        except asyncio.CancelledError:
            self.queue.state = "stopping"
            self._stopping = True
            self.wake.set()
            # Shielded, since every further await in a cancelled scope would fail, and nothing would be put back.
            with anyio.CancelScope(shield=True):
                await self._to_the_end(self._task(self._stop(root), "fastqueue-stop"))
            raise
        finally:
            self._watch.close()
            for side in sides:
                side.cancel()

    def look_at(self, due: Moment | None) -> None:
        """Jobs were pushed, the first of them due at a moment: look now, or in time for it."""
        if due is None:
            return
        if due <= self.queue.clock.now():
            self.wake.set()
        elif self._next_due is None or due < self._next_due:
            self._next_due = due
            self.wake.set()

    async def _work(self) -> None:
        pause = 0.0
        while not self._stopping:
            self.wake.clear()
            try:
                await self.queue.ready()
                tick = await self._ticker.push_due(stopping=self._stopping)
                room = self._room()
                jobs = await self._claim(room) if room > 0 else []
                pause = 0.0
            except Exception as error:
                self.store_answers = False
                pause = min(max(pause * 2, self.queue.poll), _LONGEST_PAUSE)
                if not self._stopping:
                    facts: dict[str, object] = {"error": error_text(error), "again_in": pause}
                    log.error("a claim failed: %s", line(facts), extra=extra(facts))
                    if not isinstance(error, StoreUnavailable):
                        log.debug("the claim's error", exc_info=error)
                await self.wake.sleep_through(pause, until=lambda: self._stopping)
                continue
            # Of a claim that found nothing a run's end need not make another; of a short one it may have been others'
            # work that hid the rest.
            self._hungry = room <= 0 or bool(jobs)
            self._take(jobs)
            if room <= 0:
                await self.wake.wait(None if not self.queue.schedules else self.queue.poll)
            elif len(jobs) < room:
                await self.wake.wait(self._until(tick))
            else:
                # Runs may be over by now, and a store may answer without waiting: others on the loop get their turn.
                await asyncio.sleep(0)

    def _room(self) -> int:
        """How many jobs can start soon: the free workers, and the window beyond them when half of it is empty."""
        waiting = len(self._backlog)
        if waiting > self._ahead.size // 2:
            return 0
        held = len(self.running) + self._busy_telling + waiting
        return self.queue.workers + self._ahead.size - held

    async def _claim(self, limit: int) -> list[Claimed]:
        self._token += 1
        queue = self.queue
        claim = await queue.store.claim(
            queue.clock.now(), token=self._token, limit=limit, queues=queue.queues, kinds=self._kinds
        )
        self.claimed_at, self.store_answers = queue.clock.seconds(), True
        self._next_due = claim.next_due
        self._ahead.claimed(
            full=len(claim.jobs) == limit,
            at_once=any(job.at_once for job in claim.jobs),
            rate=any(self._limiters.get(job.kind) is not None for job in claim.jobs),
        )
        # An answer may come so late that its holds are over: others may claim the same jobs, and must be let.
        now = queue.clock.now()
        if late := [job for job in claim.jobs if job.held_until <= now]:
            await self.settler.give_back(late)
        return [job for job in claim.jobs if job.held_until > now]

    def _take(self, jobs: list[Claimed]) -> None:
        if not jobs:
            return
        kinds, now = self.queue.kinds, self.queue.clock.now()
        self._backlog.extend([attempt_of(job, kinds[job.kind], now) for job in jobs])
        self._moved_at = self._loop.time()
        self._start()

    def _until(self, tick: Moment | None) -> float:
        """Seconds to sleep: until the poll, or the next moment known to be due."""
        now = self.queue.clock.now()
        due = [moment for moment in (self._next_due, tick) if moment is not None]
        # Half a millisecond, so that the clock has passed the moment and the claim finds it.
        return min([self.queue.poll, *(max(moment - now, 0) / 1000 + 0.0005 for moment in due)])

    # -- the runs --------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Start what can start now: a run that ends at once calls this again, so it is flagged."""
        if self._starting or self._booked:
            return
        self._starting = True
        begun = self._loop.time()
        try:
            while self._has_more() and len(self.running) + self._busy_telling < self.queue.workers:
                if self._last_words:
                    self._tell(self._last_words.popleft())
                    continue
                self._moved_at = begun
                attempt = self._backlog.popleft()
                self.running.add(attempt)
                attempt.task = eager_task(self._one(attempt), f"fastqueue-job-{attempt.job.id}", self._loop)
                if self._backlog and self._loop.time() - begun > TURN:
                    self._booked = True
                    self._loop.call_soon(self._start_again)
                    break
        finally:
            self._starting = False
        if self._backlog and self._stall is None:
            self._stall = self._loop.call_later(STALL, self._look_at_backlog)
        if self._hungry and len(self._backlog) <= self._ahead.size // 2:
            self.wake.set()

    def _has_more(self) -> bool:
        """Whether there is anything to start; a queue that stops starts no job, but still runs its `on_fail`s."""
        return bool(self._last_words or (self._backlog and not self._stopping))

    def _start_again(self) -> None:
        self._booked = False
        self._start()

    async def _one(self, attempt: Attempt) -> None:
        now = self.queue.clock.now()
        if attempt.held_until <= now:
            # This process was frozen since its claim: others may run the job by now.
            await self.settler.give_back([attempt.job])
            self.running.discard(attempt)
            return self._start()
        if attempt.job.schedule is not None and was_missed(attempt.kind, attempt.job, now):
            facts = attempt.fields(schedule=attempt.job.schedule)
            log.info("a missed run of a schedule was skipped: %s", line(facts), extra=extra(facts))
            self.running.discard(attempt)
            self.settler.add(End(attempt, Outcome.DONE, None, Settlement.done(attempt.job)))
            return self._start()
        limiter = self._limiters.get(attempt.job.kind)
        error = await perform(attempt, self.queue.carry, limiter, self.queue.clock, begin=self._watch.limit)
        if attempt.refused_ms is not None:
            await self.settler.hold_back(attempt)
            self.running.discard(attempt)
            self.wake.set()  # for a claim that is told when the kind goes on
            return self._start()
        # From here to the settler nothing is awaited: a late cancellation has nothing left to hit.
        self.running.discard(attempt)
        self._ahead.ran(attempt.took, at_once=attempt.job.at_once > 0)
        self.settler.add(judge(attempt, error, self.queue.clock))
        return self._start()

    def _on_fail(self, end: End) -> None:
        """A job failed for good: its `on_fail` is run by a worker, before any further job."""
        if end.attempt.kind.gave_up is None:
            return
        self._last_words.append(end)
        self._start()

    def _tell(self, end: End) -> None:
        self._busy_telling += 1

        async def tell() -> None:
            try:
                await tell_on_fail(end, self.queue.carry)
            finally:
                self._busy_telling -= 1
                if end.attempt.job.limited:
                    self.wake.set()
                self._start()

        self._awaited(tell(), f"fastqueue-on-fail-{end.attempt.job.id}")

    def _awaited(self, body: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """A task that the stop waits for as it does for runs."""
        task = self._task(body, name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _task(self, body: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """A task in a context of its own: nothing leaks in from whoever started the queue, nor from job to job."""
        return self._loop.create_task(body, name=name, context=Context())

    # -- giving back what cannot start -----------------------------------------------------------------------------

    def _look_at_backlog(self) -> None:
        """While claimed jobs wait here, each start puts the stall off; without one they are given back."""
        self._stall = None
        if not self._backlog:
            return
        left = self._moved_at + STALL - self._loop.time()
        if left > 0:
            self._stall = self._loop.call_later(left, self._look_at_backlog)
        else:
            jobs = [attempt.job for attempt in self._backlog]
            self._backlog.clear()
            self._ahead.close()
            self._awaited(self.settler.give_back(jobs), "fastqueue-give-back")

    # -- the stop --------------------------------------------------------------------------------------------------

    @staticmethod
    async def _to_the_end(stop: asyncio.Task[None]) -> None:
        """Wait for the stop, which is bounded, however often its caller is cancelled meanwhile."""
        while not stop.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({stop})
        stop.result()

    async def _stop(self, root: asyncio.Task[None]) -> None:
        """No claim any more; grace; then cancel and put back; then no longer than the tail and a last settlement."""
        if self._stall is not None:
            self._stall.cancel()
        unstarted = self._task(self._give_back_unstarted(root), "fastqueue-give-back")
        await self._wait_for_runs(self._grace())
        for attempt in list(self.running):
            attempt.gave_up = True
            attempt.cancel()
        await self._wait_for_runs(TAIL)
        await asyncio.gather(self.settler.finish(SETTLE_BOUND), asyncio.wait({unstarted}, timeout=SETTLE_BOUND))
        unstarted.cancel()
        left = sorted(f"{attempt.kind.name} {attempt.job.id}" for attempt in self.running)
        if left:
            log.warning("the queue stops while jobs still run; they run again after their holds: %s", ", ".join(left))

    async def _give_back_unstarted(self, root: asyncio.Task[None]) -> None:
        # The claim in flight is awaited, within a bound: its answer is the only list of what it holds.
        await asyncio.wait({root}, timeout=SETTLE_BOUND)
        root.cancel()
        unstarted = [attempt.job for attempt in self._backlog]
        self._backlog.clear()
        if unstarted:
            await self.settler.give_back(unstarted)

    def _grace(self) -> float:
        if self.queue.grace > 0:
            return self.queue.grace
        limits = [attempt.options.timeout_ms for attempt in self.running]
        return max((limit or 60_000 for limit in limits), default=0) / 1000

    async def _wait_for_runs(self, seconds: float) -> None:
        until = self._loop.time() + seconds
        # What has ended may still be on its way to its on_fail, which counts.
        while ((tasks := self._unfinished()) or self.settler.unsettled) and (left := until - self._loop.time()) > 0:
            if tasks:
                await asyncio.wait(tasks, timeout=left)
            else:
                await self.settler.finish(left)

    def _unfinished(self) -> set[asyncio.Task[None]]:
        """The tasks of runs, and those beside them that the stop waits for."""
        runs = (attempt.task for attempt in self.running)
        return self._tasks | {task for task in runs if task is not None and not task.done()}

    # -- drain -----------------------------------------------------------------------------------------------------

    async def drain(self) -> int:
        """Run what is due now, one by one, until nothing is; answer how many runs there were."""
        runs = 0
        try:
            while jobs := await self._claim_one():
                runs += 1
                await self._drain_one(jobs[0])
            return runs
        finally:
            self._watch.close()

    async def _claim_one(self) -> list[Claimed]:
        claim = self._task(self._claim(1), "fastqueue-claim")
        try:
            return await asyncio.shield(claim)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):  # its answer is the only list of what it holds
                await asyncio.wait({claim}, timeout=SETTLE_BOUND)
                if claim.done() and not claim.exception():
                    await self.settler.give_back(claim.result())
            claim.cancel()
            raise

    async def _drain_one(self, job: Claimed) -> None:
        attempt = attempt_of(job, self.queue.kinds[job.kind], self.queue.clock.now())
        self._backlog.append(attempt)
        self._start()
        try:
            await self._wait_for_all()
        except asyncio.CancelledError:
            attempt.gave_up = True
            attempt.cancel()
            with anyio.CancelScope(shield=True):
                await self._to_the_end(self._task(self._wait_for_runs(self._grace() + TAIL), "fastqueue-stop"))
            raise
        if self.settler.failure is not None:
            raise self.settler.failure

    async def _wait_for_all(self) -> None:
        while (tasks := self._unfinished()) or self.settler.unsettled or self._last_words:
            if tasks:
                await asyncio.wait(tasks)
            await self.settler.finish(SETTLE_BOUND + 1)

"""Pushes that come at the same time go into the store together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextvars import Context

from fastqueue.errors import StoreUnavailable
from fastqueue.job import Moment, NewJob, Pushed
from fastqueue.store import Store

__all__ = ["Coalescer"]

MOST_AT_ONCE = 1000
"""Jobs in one statement, as long as more than one caller's go into it."""


class Coalescer:
    """One push in flight; whatever is pushed meanwhile goes together in the next, each caller with its own answer."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: deque[tuple[Sequence[NewJob], asyncio.Future[list[Pushed]]]] = deque()
        self._busy = False
        self._now: Moment = 0
        self._task: asyncio.Task[None] | None = None

    async def push(self, jobs: Sequence[NewJob], now: Moment) -> list[Pushed]:
        """Keep the jobs of one caller, all or none, as pushed at the moment `now`."""
        self._now = now
        if not self._busy:
            self._busy = True
            try:
                return await self._send(jobs)
            finally:
                self._go_on()
        mine: asyncio.Future[list[Pushed]] = asyncio.get_running_loop().create_future()
        waits = (jobs, mine)
        self._waiting.append(waits)
        try:
            return await mine
        except asyncio.CancelledError:
            if waits in self._waiting:
                self._waiting.remove(waits)
            raise

    async def _send(self, jobs: Sequence[NewJob]) -> list[Pushed]:
        return await self._store.push(jobs, now=self._now)

    def _go_on(self) -> None:
        if self._waiting:
            self._task = asyncio.get_running_loop().create_task(self._flush(), name="fastqueue-push", context=Context())
        else:
            self._busy = False

    async def _flush(self) -> None:
        try:
            while self._waiting:
                batch = [self._waiting.popleft()]
                size = len(batch[0][0])
                while self._waiting and size + len(self._waiting[0][0]) <= MOST_AT_ONCE:
                    batch.append(self._waiting.popleft())
                    size += len(batch[-1][0])
                await self._deliver(batch)
                # One turn, so that the callers just answered can join the next batch with those that came meanwhile.
                await asyncio.sleep(0)
        finally:
            self._busy = False

    async def _deliver(self, batch: list[tuple[Sequence[NewJob], asyncio.Future[list[Pushed]]]]) -> None:
        try:
            pushed = await self._send([job for jobs, _ in batch for job in jobs])
        except BaseException as error:
            if len(batch) == 1 or isinstance(error, StoreUnavailable | asyncio.CancelledError):
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                if isinstance(error, asyncio.CancelledError):
                    raise
                return
            # One bad job fails its own caller, not its neighbours: halve until it is alone.
            half = len(batch) // 2
            await self._deliver(batch[:half])
            await self._deliver(batch[half:])
            return
        start = 0
        for jobs, future in batch:
            if not future.done():
                future.set_result(pushed[start : start + len(jobs)])
            start += len(jobs)

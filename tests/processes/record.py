"""What the database itself says of the jobs that are held, by its own clock where it has one."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from fastqueue.job import Moment, NewJob
from fastqueue.store import Store

KIND = "limited"
LIMIT = 3
HOLD_MS = 1000


async def now_by(store: Store) -> Moment:
    """The store's clock; the machine's for one without."""
    return time.time_ns() // 1_000_000 if store.time is None else await store.time.now()


async def fill(store: Store, jobs: int) -> None:
    """Push jobs of the limited kind, all due."""
    now = await now_by(store)
    job = NewJob(kind=KIND, payload="{}", run_at=now, hold_ms=HOLD_MS, at_once=LIMIT)
    for start in range(0, jobs, 1000):
        await store.push([job] * min(1000, jobs - start), now=now)


@dataclass
class Record:
    """What was seen of the held jobs.

    Attributes:
        most: The most that were held at one moment.
        blocked_ms: The longest between two moments at which a claim's hold was seen for the first time.
    """

    most: int = 0
    blocked_ms: int = 0
    _seen: set[tuple[int, Moment | None]] = field(default_factory=set)
    _moved: Moment | None = None

    async def look(self, store: Store) -> None:
        """Take down who is held. The clock is read after the rows, so that no hold counts that was over by then."""
        rows = await store.jobs(state="running", kind=KIND, now=await now_by(store))
        now = await now_by(store)
        # A job whose worker was killed is claimed again, and held until another moment.
        held = {(row.id, row.held_ms) for row in rows if (row.held_ms or 0) > now}
        self.most = max(self.most, len(held))
        if self._moved is None or not held <= self._seen:
            self._moved = now
        self._seen |= held
        self.blocked_ms = max(self.blocked_ms, now - self._moved)

    async def watch(self, store: Store) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self.look(store)
            await asyncio.sleep(0.002)

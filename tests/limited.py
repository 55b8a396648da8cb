"""An app with a kind that is limited, on every store, by a clock that is moved by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from fastqueue import Kind, Queue, Ran
from fastqueue.job import StoredJob
from fastqueue.store import Store
from fastqueue.stores import store_of
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import FakeClock

STORES = ["memory", "sqlite", "postgres", "mysql", "redis"]
AN_HOUR = 3600.0


class App:
    """A queue with the kind "greet", whose handler notes its values and can be kept from ending, and a free one.

    Attributes:
        seen: The values of the jobs that began, in their order.
        ran: What the queue told of each run.
    """

    def __init__(self, store: Store, clock: FakeClock, **options: Any) -> None:
        self.clock = clock
        self.store = store
        self.ran: list[Ran] = []
        self.queue = Queue(store, clock=clock, poll=AN_HOUR, observe=self._note)
        self.seen: list[str] = []
        self._started: asyncio.Queue[str] = asyncio.Queue()
        self._gates: dict[str, asyncio.Event] = {}

        @self.queue.handle("greet", **options)
        async def greet(name: str) -> None:
            await self._work(name)

        @self.queue.handle("other")
        async def other(name: str) -> None:
            await self._work(name)

        self.greet: Kind[str] = greet
        self.other: Kind[str] = other

    def _note(self, ran: Ran) -> None:
        if ran.kind == "greet":
            self.ran.append(ran)

    async def _work(self, name: str) -> None:
        self.seen.append(name)
        self._started.put_nowait(name)
        if gate := self._gates.get(name):
            await gate.wait()

    def block(self, *names: str) -> None:
        """Have the jobs of these values wait for `release`."""
        self._gates |= {name: asyncio.Event() for name in names}

    def release(self, name: str) -> None:
        """Let the job of a value end."""
        self._gates.pop(name).set()

    async def next_start(self) -> str:
        """The value of the next job to begin."""
        return await asyncio.wait_for(self._started.get(), 10)

    async def passed_by(self) -> None:
        """Wait until a claim has seen all that is due: it has taken the last job in the line, which nothing limits."""
        await self.other.push("last in line")
        while await self.next_start() != "last in line":
            pass
        self.seen.remove("last in line")

    async def jobs(self) -> list[StoredJob]:
        """What the store keeps."""
        await self.queue.ready()
        return await self.store.jobs(now=0)

    async def drain(self, *, after: float | timedelta = 0) -> int:
        """Move the clock, and run what is due."""
        self.clock.move(after)
        return await self.queue.drain()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Run the queue around the block; what still runs at its end is let go."""
        task = asyncio.create_task(self.queue.run())
        try:
            yield
        finally:
            for name in list(self._gates):
                self.release(name)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


class Apps:
    """Makes apps, and other processes' views of them: all on one database and one clock."""

    def __init__(self, url: str) -> None:
        self.clock = FakeClock()
        self._url = url
        self._first: MemoryStore | None = None
        self._made: list[Queue | Store] = []

    def __call__(self, **options: Any) -> App:
        """An app whose "greet" has these options, with a store object of its own."""
        app = App(self._store(), self.clock, **options)
        self._made.append(app.queue)
        return app

    async def store(self) -> Store:
        """Another store object on the database, open."""
        store = self._store()
        self._made.append(store)
        await store.open()
        return store

    def _store(self) -> Store:
        if self._url != "memory://":
            return store_of(self._url)
        self._first = self._first or MemoryStore()
        return self._first.again()

    async def close(self) -> None:
        """Close what was made."""
        for made in self._made:
            await made.close()


class Says:
    """A limiter that gives these answers one after the other, then 0; an error is raised."""

    def __init__(self, *answers: float | timedelta | BaseException) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def ask(self, kind: str, /) -> float | timedelta:
        self.asked.append(kind)
        answer = self.answers.pop(0) if self.answers else 0
        if isinstance(answer, BaseException):
            raise answer
        return answer

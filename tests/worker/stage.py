"""What the tests of the worker share: a queue that runs, runs as they are observed, stores that misbehave."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

import pytest

from fastqueue import Queue, Ran
from fastqueue.job import Claimed, Moment, StoredJob
from fastqueue.outcome import Settlement
from fastqueue.store import Claim
from fastqueue.stores.memory import MemoryStore

T = TypeVar("T")

SOON = 20.0
"""Seconds that a test waits for what comes at once, before it fails."""

A_WHILE = 0.1
"""Seconds that a test gives what must not happen."""


async def soon(coming: Awaitable[T]) -> T:
    """What is awaited, which comes at once unless something is wrong."""
    async with asyncio.timeout(SOON):
        return await coming


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what tells nobody when it happens."""
    async with asyncio.timeout(SOON):
        while not await true():  # noqa: ASYNC110 - it asks a store, which has no event
            await asyncio.sleep(0.005)


@asynccontextmanager
async def running(queue: Queue) -> AsyncGenerator[asyncio.Task[None]]:
    """A queue that runs inside the block, and is stopped at its end."""
    task = asyncio.create_task(queue.run())
    try:
        yield task
    finally:
        await stopped(task)


async def stopped(task: asyncio.Task[None] | asyncio.Task[int]) -> None:
    """Stop a queue that runs, and wait for the end of that."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await soon(task)


async def kept(store: MemoryStore) -> list[StoredJob]:
    """All jobs that a store has."""
    return await store.jobs(now=0, limit=10_000)


async def taken(store: MemoryStore, kind: str, now: Moment, token: int = 1) -> list[Claimed]:
    """Claim jobs as another process does."""
    return (await store.claim(now, token=token, limit=9, queues=None, kinds={kind})).jobs


def lines(caplog: pytest.LogCaptureFixture, level: int = logging.DEBUG) -> list[str]:
    """The log lines of a level and above."""
    return [record.getMessage() for record in caplog.records if record.levelno >= level]


class Observed:
    """An observer: the runs it was told of, and the next one as it comes."""

    def __init__(self) -> None:
        self.all: list[Ran] = []
        self._coming: asyncio.Queue[Ran] = asyncio.Queue()

    def __call__(self, ran: Ran) -> None:
        self.all.append(ran)
        self._coming.put_nowait(ran)

    async def next(self) -> Ran:
        return await soon(self._coming.get())

    @property
    def outcomes(self) -> list[str]:
        return [ran.outcome.value for ran in self.all]


class Faulty(MemoryStore):
    """Raises what it is given, call by call, until that is used up."""

    def __init__(self, *, claiming: Collection[Exception] = (), settling: Collection[Exception] = ()) -> None:
        super().__init__()
        self.claiming = list(claiming)
        self.settling = list(settling)
        self.given_back: list[int] = []

    async def claim(
        self, now: Moment, *, token: int, limit: int, queues: Sequence[str] | None, kinds: Collection[str]
    ) -> Claim:
        if self.claiming:
            raise self.claiming.pop(0)
        return await super().claim(now, token=token, limit=limit, queues=queues, kinds=kinds)

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        if self.settling:
            raise self.settling.pop(0)
        return await super().settle(settlements)

    async def give_back(self, jobs: Sequence[Claimed]) -> list[bool]:
        self.given_back += [job.id for job in jobs]
        return await super().give_back(jobs)

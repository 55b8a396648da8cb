"""What the tests of every server's store ask of it: jobs, claims, and a worker's ear."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, TypeVar

from fastqueue.job import Claimed, NewJob
from fastqueue.store import Store

F = TypeVar("F")

NOW = 1_788_264_000_000
TOKENS = count(2**61)


def job(n: int = 0, *, at: int = NOW, kind: str = "mail", **asks: Any) -> NewJob:
    """A new job with a number."""
    return NewJob(kind=kind, payload=f'{{"n": {n}}}', run_at=at, **asks)


async def claimed(
    store: Store, limit: int = 100, *, now: int = NOW, kinds: tuple[str, ...] = ("mail",)
) -> list[Claimed]:
    """A claim's jobs."""
    return (await store.claim(now, token=next(TOKENS), limit=limit, queues=None, kinds=kinds)).jobs


def there(faculty: F | None) -> F:
    """A faculty that the store has."""
    assert faculty is not None
    return faculty


async def until(true: Callable[[], bool | Awaitable[bool]]) -> None:
    """Wait for something that the server or another task does."""
    async with asyncio.timeout(20):
        while True:
            answer = true()
            if answer if isinstance(answer, bool) else await answer:
                return
            await asyncio.sleep(0.005)


class Ear:
    """A worker's wake, and how often it was called."""

    def __init__(self) -> None:
        self.times = 0
        self._heard = asyncio.Event()

    def __call__(self) -> None:
        self.times += 1
        self._heard.set()

    async def next(self) -> None:
        """Wait until it is called; what was heard before does not count."""
        async with asyncio.timeout(20):
            await self._heard.wait()
        self._heard.clear()

    @property
    def quiet(self) -> bool:
        return not self._heard.is_set()


@asynccontextmanager
async def listening(store: Store) -> AsyncGenerator[Ear]:
    """An ear whose line is up, until the end of the block."""
    ear = Ear()
    task = asyncio.create_task(there(store.wakes).listen(ear))
    try:
        await ear.next()
        await until(lambda: there(store.wakes).up)
        yield ear
    finally:
        task.cancel()
        await asyncio.wait({task})
    assert task.cancelled()
    assert not there(store.wakes).up

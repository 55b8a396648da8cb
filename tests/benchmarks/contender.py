"""What can be measured: a queue that takes numbers and runs a handler for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, ClassVar

from fastqueue import Kind, Queue, Unique

__all__ = ["Contender", "Ours", "load"]


class Contender(ABC):
    """A queue on a store, in this process.

    Args:
        url: The store.
        began: To be called by the handler with the number of its job.
        ended: To be called at the end of each run; by fastqueue once the store knows of it, by others in the handler.
    """

    name: ClassVar[str]
    store: ClassVar[str]
    tuned: ClassVar[str]
    """What is set for "drain, tuned"."""
    works_elsewhere: ClassVar[bool] = False
    """Whether its jobs run in other processes, of which nothing is measured here but when they have run."""

    def __init__(self, url: str, began: Callable[[int], None], ended: Callable[[], None]) -> None:
        self.url, self.began, self.ended = url, began, ended

    def ran(self, number: int) -> None:
        """A handler that does nothing was called."""
        self.began(number)
        self.ended()

    @abstractmethod
    async def open(self) -> None:
        """Make the tables, connect, and register a handler."""

    async def close(self) -> None:  # noqa: B027 - what has nothing to say goodbye with says nothing
        """Disconnect. The process ends after it."""

    @abstractmethod
    async def push(self, number: int) -> None: ...

    async def push_many(self, numbers: Sequence[int]) -> None:
        """Push by the means it has for many; one by one when it has none."""
        for number in numbers:
            await self.push(number)

    @abstractmethod
    async def work(self, *, tuned: bool) -> None:
        """Run jobs until cancelled."""


class Ours(Contender):
    """fastqueue on one of its stores."""

    name = "fastqueue"
    tuned = "workers=500"

    limit: str = "none"
    """"tenth": a tenth of the jobs is of a kind with at_once=50; "keys": each has a key and runs one at a time."""

    queue: Queue
    plain: Kind[int]
    limited: Kind[int]

    async def open(self) -> None:
        self.queue = Queue(self.url, observe=lambda _: self.ended())

        async def nothing(number: int) -> None:
            self.began(number)

        unique = Unique(one_at_a_time=True) if self.limit == "keys" else None
        self.plain = self.queue.handle("nothing", unique=unique)(nothing)
        self.limited = self.queue.handle("limited", at_once=50)(nothing)
        await self.queue.ready()

    async def close(self) -> None:
        await self.queue.close()

    async def push(self, number: int) -> None:
        await self.plain.push(number)

    async def push_many(self, numbers: Sequence[int]) -> None:
        if self.limit == "tenth":
            await self.limited.push_many(numbers[::10])
            numbers = [number for place, number in enumerate(numbers) if place % 10]
        await self.plain.push_many(numbers)

    async def work(self, *, tuned: bool) -> None:
        if tuned:
            self.queue.workers = 500
        await self.queue.run()


def load(module: str) -> Any:
    """A peer's package, which only the benchmarks' own environment has."""
    return import_module(module)

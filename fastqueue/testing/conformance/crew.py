"""The processes in which races are run again, as instances of an app would run them.

They are spawned once and kept; each holds its share of the store objects open from one round to the next, and gives
them back before the database goes.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import Any, TypeVar

from fastqueue.store import Store

__all__ = ["leave", "race"]

R = TypeVar("R")

PROCESSES = 4


async def race(
    make: Callable[[], Store], racer: Callable[..., Awaitable[R]], args: tuple[Any, ...], racers: int
) -> list[R]:
    """Run `racer(store, number, *args)` for each number, spread over the processes."""
    factory = pickle.dumps(make)
    shares = [range(process, racers, PROCESSES) for process in range(PROCESSES)]
    await _everywhere(_stand, [(factory, numbers) for numbers in shares])
    answers = await _everywhere(_race, [(racer, args, numbers) for numbers in shares])
    return [answer for share in answers for answer in share]


async def leave() -> None:
    """Close the store objects in all processes."""
    await _everywhere(_leave, [()] * PROCESSES)


@cache
def _processes() -> list[ProcessPoolExecutor]:
    spawn = get_context("spawn")
    return [ProcessPoolExecutor(1, mp_context=spawn) for _ in range(PROCESSES)]


async def _everywhere(work: Callable[..., R], calls: list[tuple[Any, ...]]) -> list[R]:
    futures = [process.submit(work, *args) for process, args in zip(_processes(), calls, strict=True)]
    return await asyncio.gather(*map(asyncio.wrap_future, futures))


# What follows runs in the processes.

_stores: dict[int, Store] = {}


@cache
def _runner() -> asyncio.Runner:
    return asyncio.Runner()


def _stand(factory: bytes, numbers: range) -> None:
    async def stand() -> None:
        for number in numbers:
            if number not in _stores:
                _stores[number] = pickle.loads(factory)()  # noqa: S301 - from the test that started this
                await _stores[number].open()

    _runner().run(stand())


def _race(racer: Callable[..., Awaitable[R]], args: tuple[Any, ...], numbers: range) -> list[R]:
    async def run() -> list[R]:
        return await asyncio.gather(*(racer(_stores[number], number, *args) for number in numbers))

    return _runner().run(run())


def _leave() -> None:
    async def leave() -> None:
        while _stores:
            await _stores.popitem()[1].close()

    _runner().run(leave())

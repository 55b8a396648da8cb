"""The peers: other queues, driven as their own documentation says."""

from __future__ import annotations

import asyncio

from tests.benchmarks.contender import Contender, load
from tests.benchmarks.peers_postgres import ON_POSTGRES
from tests.benchmarks.peers_redis import ON_REDIS

__all__ = ["PEERS"]


class Huey(Contender):
    """In threads, as it has no asyncio worker; its default is one of them."""

    name, store, tuned = "huey", "sqlite", "workers=4"

    async def open(self) -> None:
        path = self.url.removeprefix("sqlite:///")
        self.huey = load("huey").SqliteHuey(filename=path, fsync=True, results=False)
        loop = asyncio.get_running_loop()

        def nothing(number: int) -> None:
            loop.call_soon_threadsafe(self.ran, number)

        self.task = self.huey.task(name="nothing")(nothing)

    async def push(self, number: int) -> None:
        self.task(number)

    async def work(self, *, tuned: bool) -> None:
        consumer = self.huey.create_consumer(workers=4 if tuned else 1, periodic=False)
        consumer.start()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            consumer.stop(graceful=False)


ALL: tuple[type[Contender], ...] = (*ON_POSTGRES, *ON_REDIS, Huey)
PEERS = {peer.name: peer for peer in ALL}

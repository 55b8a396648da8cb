"""The peers, each driven by the means its own documentation gives for an asyncio app."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tests.benchmarks.contender import Contender, load

__all__ = ["PEERS"]


class Procrastinate(Contender):
    name, store, tuned = "procrastinate", "postgres", "concurrency=100"

    async def open(self) -> None:
        package = load("procrastinate")
        self.app = package.App(connector=package.PsycopgConnector(conninfo=self.url))
        await self.app.open_async()
        if not await self.app.check_connection_async():
            await self.app.schema_manager.apply_schema_async()

        async def nothing(number: int) -> None:
            self.ran(number)

        self.task = self.app.task(name="nothing")(nothing)

    async def close(self) -> None:
        await self.app.close_async()

    async def push(self, number: int) -> None:
        await self.task.defer_async(number=number)

    async def push_many(self, numbers: Sequence[int]) -> None:
        await self.task.batch_defer_async(*({"number": number} for number in numbers))

    async def work(self, *, tuned: bool) -> None:
        settings = {"concurrency": 100} if tuned else {}
        await self.app.run_worker_async(install_signal_handlers=False, delete_jobs="successful", **settings)


class PgQueuer(Contender):
    name, store, tuned = "pgqueuer", "postgres", "batch_size=500"

    async def open(self) -> None:
        self.pool = await load("asyncpg").create_pool(self.url)
        self.app = load("pgqueuer").PgQueuer.from_asyncpg_pool(self.pool)
        if not await self.app.qm.queries.schema_is_installed():
            await self.app.qm.queries.install()

        async def nothing(job: Any) -> None:
            self.ran(int(job.payload))

        self.app.entrypoint("nothing")(nothing)

    async def close(self) -> None:
        await self.pool.close()

    async def push(self, number: int) -> None:
        await self.app.qm.queries.enqueue("nothing", str(number).encode())

    async def push_many(self, numbers: Sequence[int]) -> None:
        payloads = [str(number).encode() for number in numbers]
        await self.app.qm.queries.enqueue(["nothing"] * len(payloads), payloads, [0] * len(payloads))

    async def work(self, *, tuned: bool) -> None:
        settings = {"batch_size": 500} if tuned else {}
        await self.app.run(dequeue_timeout=timedelta(seconds=1), **settings)


class Saq(Contender):
    name, store, tuned = "saq", "redis", "concurrency=100"

    async def open(self) -> None:
        self.queue = load("saq").Queue.from_url(self.url)
        await self.queue.connect()

    async def close(self) -> None:
        await self.queue.disconnect()

    async def push(self, number: int) -> None:
        await self.queue.enqueue("nothing", number=number)

    async def work(self, *, tuned: bool) -> None:
        async def nothing(context: object, *, number: int) -> None:
            self.ran(number)

        settings = {"concurrency": 100} if tuned else {}
        await load("saq").Worker(self.queue, functions=[("nothing", nothing)], **settings).start()


class Arq(Contender):
    name, store, tuned = "arq", "redis", "max_jobs=100"

    async def open(self) -> None:
        self.settings = load("arq.connections").RedisSettings.from_dsn(self.url)
        self.pool = await load("arq").create_pool(self.settings)

    async def push(self, number: int) -> None:
        await self.pool.enqueue_job("nothing", number)

    async def work(self, *, tuned: bool) -> None:
        async def nothing(context: object, number: int) -> None:
            self.ran(number)

        function = load("arq.worker").func(nothing, name="nothing")
        settings = {"max_jobs": 100} if tuned else {}
        worker = load("arq").Worker([function], redis_settings=self.settings, handle_signals=False, **settings)
        await worker.async_run()


class Taskiq(Contender):
    name, store, tuned = "taskiq", "redis", "max_async_tasks=100, max_prefetch=100"

    async def open(self) -> None:
        self.broker = load("taskiq_redis").ListQueueBroker(self.url)

        async def nothing(number: int) -> None:
            self.ran(number)

        self.task = self.broker.task(task_name="nothing")(nothing)
        await self.broker.startup()

    async def close(self) -> None:
        await self.broker.shutdown()

    async def push(self, number: int) -> None:
        await self.task.kiq(number)

    async def work(self, *, tuned: bool) -> None:
        settings = {"max_async_tasks": 100, "max_prefetch": 100} if tuned else {"max_async_tasks": 10}
        receiver = load("taskiq.receiver").Receiver(self.broker, run_startup=False, **settings)
        await receiver.listen(asyncio.Event())


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


PEERS: dict[str, type[Contender]] = {peer.name: peer for peer in (Procrastinate, PgQueuer, Saq, Arq, Taskiq, Huey)}

for name in ("procrastinate", "pgqueuer", "saq", "arq", "taskiq", "huey"):
    logging.getLogger(name).setLevel(logging.ERROR)

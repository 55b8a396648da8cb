"""The peers on Redis, each driven by the means its own documentation gives for an asyncio app."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any

from tests.benchmarks.contender import Contender, load

__all__ = ["ON_REDIS"]


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


class Streaq(Contender):
    name, store, tuned = "streaq", "redis", "concurrency=100"

    async def open(self) -> None:
        self.worker = self._made()
        await self.worker.__aenter__()

    def _made(self, **settings: Any) -> Any:
        worker = load("streaq").Worker(redis_url=self.url, handle_signals=False, **settings)

        async def nothing(number: int) -> None:
            self.ran(number)

        self.task = worker.task(name="nothing")(nothing)
        return worker

    async def close(self) -> None:
        await self.worker.__aexit__(None, None, None)

    async def push(self, number: int) -> None:
        await self.task.enqueue(number)

    async def push_many(self, numbers: Sequence[int]) -> None:
        await self.worker.enqueue_many([self.task.enqueue(number) for number in numbers])

    async def work(self, *, tuned: bool) -> None:
        await self._made(**({"concurrency": 100} if tuned else {})).run_async()


class Docket(Contender):
    name, store, tuned = "pydocket", "redis", "concurrency=50"

    async def open(self) -> None:
        self.docket = load("docket").Docket(url=self.url)
        await self.docket.__aenter__()

        async def nothing(number: int) -> None:
            self.ran(number)

        self.task = nothing
        self.docket.register(nothing)

    async def close(self) -> None:
        await self.docket.__aexit__(None, None, None)

    async def push(self, number: int) -> None:
        await self.docket.add(self.task)(number)

    async def work(self, *, tuned: bool) -> None:
        async with load("docket").Worker(self.docket, **({"concurrency": 50} if tuned else {})) as worker:
            await worker.run_forever()


class Celery(Contender):
    """In processes of its own, one a core, as it has no asyncio worker; its start is part of a drain."""

    name, store, tuned = "celery", "redis", "worker_prefetch_multiplier=100"
    works_elsewhere = True

    async def open(self) -> None:
        os.environ["BENCH_REDIS"] = self.url
        self.task = load("tests.benchmarks.celery_app").nothing

    async def push(self, number: int) -> None:
        self.task.delay(number)

    async def work(self, *, tuned: bool) -> None:
        reader, writer = os.pipe()
        ran = load("tests.benchmarks.celery_app").JOB

        def read() -> None:
            for (number,) in ran.iter_unpack(os.read(reader, 4096 * ran.size)):
                self.ran(number)

        asyncio.get_running_loop().add_reader(reader, read)
        options = ["--prefetch-multiplier", "100"] if tuned else []
        worker = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "celery", "-A", "tests.benchmarks.celery_app", "worker", "-l", "ERROR", *options),
            env=os.environ | {"BENCH_PIPE": str(writer)},
            pass_fds=[writer],
            stdout=asyncio.subprocess.DEVNULL,
        )
        try:
            await worker.wait()
        finally:
            worker.kill()


ON_REDIS: tuple[type[Contender], ...] = (Saq, Arq, Taskiq, Streaq, Docket, Celery)

"""The peers on PostgreSQL, each driven by the means its own documentation gives for an asyncio app."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tests.benchmarks.contender import Contender, load

__all__ = ["ON_POSTGRES"]


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


class Chancy(Contender):
    """Its default executor is a pool of processes; this is the one for asyncio."""

    name, store, tuned = "chancy", "postgres", "concurrency=100, eager_polling"

    async def open(self) -> None:
        package = load("chancy")
        self.app = package.Chancy(self.url)
        await self.app.__aenter__()
        await self.app.migrate()

        async def nothing(*, number: int) -> None:
            self.ran(number)

        nothing.__module__, nothing.__qualname__ = __name__, "chancy_nothing"
        globals()["chancy_nothing"] = nothing
        self.job = package.job(queue="default")(nothing).job

    async def close(self) -> None:
        await self.app.__aexit__(None, None, None)

    async def push(self, number: int) -> None:
        await self.app.push(self.job.with_kwargs(number=number))

    async def push_many(self, numbers: Sequence[int]) -> None:
        async for _ in self.app.push_many([self.job.with_kwargs(number=number) for number in numbers]):
            pass

    async def work(self, *, tuned: bool) -> None:
        package = load("chancy")
        settings: dict[str, Any] = {"concurrency": 100, "eager_polling": True} if tuned else {}
        await self.app.declare(
            package.Queue("default", executor="chancy.executors.asyncex.AsyncExecutor", **settings), upsert=True
        )
        async with package.Worker(self.app, register_signal_handlers=False) as worker:
            await worker.wait_for_shutdown()


class Oban(Contender):
    """A queue has to be given a limit; its documentation's first is 10."""

    name, store, tuned = "oban", "postgres", "limit=100"

    async def open(self) -> None:
        package, schema = load("oban"), load("oban.schema")
        self.pool = await package.Oban.create_pool(self.url)
        await schema.install(self.pool)

        def process(_: object, job: Any) -> Any:
            async def run() -> None:
                self.ran(job.args["number"])

            return run()

        self.worker = package.worker(queue="default")(type("Nothing", (), {"process": process}))
        self.app = package.Oban(pool=self.pool, queues={})

    async def close(self) -> None:
        await self.pool.close()

    async def push(self, number: int) -> None:
        await self.app.enqueue(self.worker.new({"number": number}))

    async def push_many(self, numbers: Sequence[int]) -> None:
        await self.app.enqueue_many([self.worker.new({"number": number}) for number in numbers])

    async def work(self, *, tuned: bool) -> None:
        app = load("oban").Oban(pool=self.pool, name="worker", queues={"default": 100 if tuned else 10})
        async with app:
            await asyncio.get_running_loop().create_future()


@dataclass
class Number:
    number: int


class Awa(Contender):
    """Its engine is Rust; only the handler is Python. Its documentation's first worker has 4 at once."""

    name, store, tuned = "awa-pg", "postgres", "256 workers"

    async def open(self) -> None:
        self.app = load("awa").AsyncClient(self.url)
        await self.app.migrate()

        async def nothing(job: Any) -> None:
            self.ran(job.args.number)

        self.app.task(Number, queue="default")(nothing)

    async def close(self) -> None:
        await self.app.close()

    async def push(self, number: int) -> None:
        await self.app.insert(Number(number))

    async def push_many(self, numbers: Sequence[int]) -> None:
        await self.app.insert_many_copy([Number(number) for number in numbers])

    async def work(self, *, tuned: bool) -> None:
        await self.app.start([("default", 256 if tuned else 4)])
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await self.app.shutdown()


class Soniq(Contender):
    name, store, tuned = "soniq", "postgres", "concurrency=18"

    async def open(self) -> None:
        self.app = load("soniq").Soniq(self.url)
        await self.app.setup()

        async def nothing(number: int) -> None:
            self.ran(number)

        self.task = self.app.job(name="nothing")(nothing)

    async def close(self) -> None:
        await self.app.close()

    async def push(self, number: int) -> None:
        await self.app.enqueue(self.task, number=number)

    async def push_many(self, numbers: Sequence[int]) -> None:
        await self.app.enqueue_many(self.task, [{"number": number} for number in numbers])

    async def work(self, *, tuned: bool) -> None:
        await self.app.run_worker(concurrency=18 if tuned else 4)


ON_POSTGRES: tuple[type[Contender], ...] = (Procrastinate, PgQueuer, Chancy, Oban, Awa, Soniq)

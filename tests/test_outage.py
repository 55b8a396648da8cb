"""A store that fails for a while, under a real server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection, Sequence

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from fastqueue import Pushed, Queue
from fastqueue.errors import StoreUnavailable
from fastqueue.fastapi import health, lifespan
from fastqueue.job import Lane, Moment, NewJob
from fastqueue.store import Claim
from fastqueue.stores.memory import MemoryStore
from tests.worker.stage import soon, until


class Failing(MemoryStore):
    """A store whose server can be away, and whose next claim can go wrong in an unexpected way."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False
        self.unexpected: Exception | None = None
        self.went_wrong = asyncio.Event()

    def _check(self) -> None:
        if self.away:
            self.went_wrong.set()
            raise StoreUnavailable("the server is away")

    async def claim(
        self, now: Moment, *, token: int, limit: int, queues: Sequence[str] | None, kinds: Collection[str]
    ) -> Claim:
        self._check()
        if self.unexpected is not None:
            error, self.unexpected = self.unexpected, None
            self.went_wrong.set()
            raise error
        return await super().claim(now, token=token, limit=limit, queues=queues, kinds=kinds)

    async def push(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        self._check()
        return await super().push(jobs, now=now)

    async def lanes(self) -> list[Lane]:
        self._check()
        return await super().lanes()


async def test_the_server_answers_through_an_outage_and_jobs_go_on_after_it(caplog: pytest.LogCaptureFixture) -> None:
    store = Failing()
    queue = Queue(store, poll=0.02)
    ran: asyncio.Queue[int] = asyncio.Queue()

    @queue.handle("note")
    async def note(number: int) -> None:
        await ran.put(number)

    app = FastAPI(lifespan=lifespan(queue))
    app.add_route("/health", health(queue))

    @app.post("/notes/{number}")
    async def push(number: int) -> int:
        return (await note.push(number)).id

    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        port = listening.getsockname()[1]

        async def started() -> bool:
            return server.started

        await until(started)
        limits = httpx.Limits(max_keepalive_connections=0)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", limits=limits) as client:
            assert (await client.post("/notes/1")).status_code == 200
            assert await soon(ran.get()) == 1
            assert (await client.get("/health")).status_code == 200

            store.away = True
            await soon(store.went_wrong.wait())
            assert (await client.get("/health")).status_code == 503
            assert (await client.post("/notes/2")).status_code == 500
            assert (await client.get("/openapi.json")).status_code == 200

            store.away = False
            store.went_wrong.clear()
            store.unexpected = ZeroDivisionError("a fault of ours")
            await soon(store.went_wrong.wait())
            assert (await client.post("/notes/3")).status_code == 200
            assert await soon(ran.get()) == 3

            async def well() -> bool:
                return (await client.get("/health")).status_code == 200

            await until(well)
        server.should_exit = True
        await soon(serving)
    assert ran.empty(), "the push that failed was not kept"
    failed_claims = [record for record in caplog.records if record.getMessage().startswith("a claim failed")]
    assert failed_claims

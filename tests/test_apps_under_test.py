"""The ways in which apps are tested: with and without their lifespan, each test on an event loop of its own."""

from __future__ import annotations

import asyncio
import gc

import httpx
import pytest
from asgi_lifespan import LifespanManager
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from fastqueue import Queue
from fastqueue.starlette import lifespan
from tests.handles import store_at

SOON = 20.0


@pytest.fixture(params=["sqlite", "postgres", "mysql"])
def queue(request: pytest.FixtureRequest) -> Queue:
    """A queue as an app's module makes it: before there is any event loop."""
    return Queue(store_at(request.param, request.getfixturevalue(f"{request.param}_url")))


class Site:
    """An app that pushes a job for each request, and what its jobs did."""

    def __init__(self, queue: Queue, *, fastapi: bool = False) -> None:
        self.queue = queue
        self.ran: list[int] = []
        self.done = asyncio.Event()
        self.note = queue.handle("note", self._note)
        self.app: Starlette = FastAPI(lifespan=lifespan(queue)) if fastapi else Starlette(lifespan=lifespan(queue))
        self.app.router.routes.append(Route("/{number:int}", self._push, methods=["POST"]))

    async def _note(self, number: int) -> None:
        self.ran.append(number)
        self.done.set()

    async def _push(self, request: Request) -> JSONResponse:
        pushed = await self.note.push(request.path_params["number"])
        return JSONResponse({"new": pushed.new})

    async def drained(self) -> int:
        async with self.queue:
            return await self.queue.drain()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("fastapi", [False, True], ids=["starlette", "fastapi"])
def test_a_test_client_without_with_pushes_on_a_loop_for_each_request_and_runs_nothing(
    queue: Queue, fastapi: bool
) -> None:
    site = Site(queue, fastapi=fastapi)
    client = TestClient(site.app)
    for number in range(3):
        assert client.post(f"/{number}").json() == {"new": True}
    assert site.ran == []
    assert asyncio.run(site.drained()) == 3
    assert site.ran == [0, 1, 2]
    gc.collect()  # connections to a server stay behind on their closed loops, as the page on testing says


def test_a_test_client_entered_by_with_runs_the_jobs_and_can_be_entered_again(queue: Queue) -> None:
    site = Site(queue)
    for number in range(2):
        site.done = asyncio.Event()
        with TestClient(site.app) as client:
            assert client.post(f"/{number}").status_code == 200
            assert client.portal is not None
            client.portal.call(_soon, site.done)
    assert site.ran == [0, 1]


async def _soon(event: asyncio.Event) -> None:
    async with asyncio.timeout(SOON):
        await event.wait()


async def test_httpx_s_transport_pushes_without_a_lifespan_and_the_test_drains(queue: Queue) -> None:
    site = Site(queue)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(site.app), base_url="http://site") as client:
        assert (await client.post("/1")).status_code == 200
    assert await site.drained() == 1
    assert site.ran == [1]


async def test_httpx_s_transport_inside_the_lifespan_runs_the_jobs(queue: Queue) -> None:
    site = Site(queue)
    async with (
        LifespanManager(site.app) as started,
        httpx.AsyncClient(transport=httpx.ASGITransport(started.app), base_url="http://site") as client,
    ):
        assert (await client.post("/1")).status_code == 200
        await _soon(site.done)
    assert site.ran == [1]


@pytest.mark.anyio
class TestByAnyio:
    """Its plugin gives each test a loop of its own too."""

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @pytest.mark.parametrize("number", [1, 2])
    async def test_each_test_has_its_own_loop(self, queue: Queue, number: int) -> None:
        site = Site(queue)
        await site.note.push(number)
        assert await site.drained() == 1
        assert site.ran == [number]

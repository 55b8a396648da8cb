"""The queue in an app's lifespan: started with the app, kept running, stopped with it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

import fastqueue.starlette
from fastqueue.errors import RegistrationError, SchemaMissing, StoreUnavailable
from fastqueue.job import Claimed, Moment
from fastqueue.queue import Queue
from fastqueue.starlette import Lifespan, combine, health, lifespan
from fastqueue.store import Claim
from fastqueue.stores.memory import MemoryStore

SOON = 20.0
"""Seconds that a test waits for what comes at once, before it fails."""


class Unsteady(MemoryStore):
    """Fails where it is told to, and says how often it was opened and closed."""

    def __init__(self, *, opening: Sequence[Exception] = (), claiming: Sequence[Claim | BaseException] = ()) -> None:
        super().__init__()
        self.opening = list(opening)
        self.claiming = list(claiming)
        self.closing: Exception | None = None
        self.opened = self.closed = 0

    async def open(self) -> None:
        if self.opening:
            raise self.opening.pop(0)
        self.opened += 1

    async def close(self) -> None:
        self.closed += 1
        if self.closing:
            raise self.closing

    async def claim(
        self, now: Moment, *, token: int, limit: int, queues: Sequence[str] | None, kinds: Collection[str]
    ) -> Claim:
        if self.claiming:
            answer = self.claiming.pop(0)
            if isinstance(answer, BaseException):
                raise answer
            return answer
        return await super().claim(now, token=token, limit=limit, queues=queues, kinds=kinds)


STRANGER = Claim(
    [
        Claimed(
            id=99,
            token=1,
            kind="never asked for",
            queue="default",
            payload="1",
            run_at=0,
            held_until=10**15,
            hold_ms=1,
            attempts=1,
        )
    ],
    None,
)
"""An answer that breaks the contract of stores, so that the worker breaks with it."""


class Heard(logging.Handler):
    """The errors that were logged, and the queue's state at each."""

    queue: Queue

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.errors: list[str] = []
        self.states: list[str] = []
        self.first = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.errors.append(record.getMessage())
        self.states.append(self.queue.state)
        self.first.set()


def starlette_app(lifespan: Lifespan) -> Starlette:
    return Starlette(lifespan=lifespan)


def fastapi_app(lifespan: Lifespan) -> Starlette:
    return FastAPI(lifespan=lifespan)


def app_with_router(lifespan: Lifespan) -> Starlette:
    app = FastAPI()
    app.include_router(APIRouter(lifespan=lifespan))
    return app


@pytest.mark.parametrize("make", [starlette_app, fastapi_app, app_with_router])
def test_jobs_run_beside_the_app_each_time_it_is_started(make: Callable[[Lifespan], Starlette]) -> None:
    queue = Queue(MemoryStore())
    ran = threading.Event()

    @queue.handle("note")
    async def note(number: int) -> None:
        ran.set()

    async def push(request: Request) -> JSONResponse:
        await note.push(1)
        return JSONResponse(queue.state)

    app = make(lifespan(queue))
    app.add_route("/push", push)
    for _ in range(2):
        ran.clear()
        with TestClient(app) as client:
            assert client.get("/push").json() == "running"
            assert ran.wait(SOON)
        assert queue.state == "stopped"


def logged(log: list[str], name: str, state: Mapping[str, Any] | None) -> Lifespan:
    @asynccontextmanager
    async def within(app: Any) -> AsyncGenerator[Any]:
        log.append(f"{name} opens")
        yield state
        log.append(f"{name} closes")

    return within


async def test_the_other_lifespans_open_before_the_queue_and_close_after_it() -> None:
    log: list[str] = []
    queue = Queue(MemoryStore())
    begun = asyncio.Event()

    @queue.handle("note")
    async def note(number: int) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            log.append("job ends")

    queue.grace = 0.01
    async with lifespan(queue, logged(log, "a", None), logged(log, "b", {}))(None):
        await note.push(1)
        await asyncio.wait_for(begun.wait(), SOON)
        assert log == ["a opens", "b opens"]
    assert log == ["a opens", "b opens", "job ends", "b closes", "a closes"]


async def test_the_states_of_the_lifespans_are_merged_and_the_queue_is_among_them() -> None:
    queue = Queue(MemoryStore())
    async with lifespan(queue, logged([], "a", {"x": 1, "y": 1}), logged([], "b", {"y": 2}))(None) as state:
        assert state == {"x": 1, "y": 2, "queue": queue}


async def test_the_queue_stands_in_the_state_by_the_name_it_is_given_or_not_at_all() -> None:
    one, two, three = Queue(MemoryStore()), Queue(MemoryStore()), Queue(MemoryStore())
    all_three = combine(lifespan(one), lifespan(two, state="mail"), lifespan(three, state=None))
    async with all_three(None) as state:
        assert state == {"queue": one, "mail": two}


async def test_a_job_sees_nothing_of_the_context_the_app_started_in() -> None:
    tenant: ContextVar[str] = ContextVar("tenant", default="nobody")
    seen: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    queue = Queue(MemoryStore())

    @queue.handle("note")
    async def note(number: int) -> None:
        seen.set_result(tenant.get())

    tenant.set("the one who started it")
    async with lifespan(queue)(None):
        await note.push(1)
        assert await asyncio.wait_for(seen, SOON) == "nobody"


@pytest.fixture
def heard() -> Iterator[Heard]:
    handler = Heard()
    logger = logging.getLogger("fastqueue")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


@pytest.mark.parametrize("answer", [STRANGER, asyncio.CancelledError("nobody's")], ids=["error", "stray cancellation"])
async def test_a_run_that_ends_unexpectedly_is_started_again(answer: Claim | BaseException, heard: Heard) -> None:
    queue = heard.queue = Queue(Unsteady(claiming=[answer] * 3))
    ran = asyncio.Event()

    @queue.handle("note")
    async def note(number: int) -> None:
        ran.set()

    async with lifespan(queue)(None):
        await note.push(1)
        await asyncio.wait_for(ran.wait(), SOON)
        assert queue.state == "running"
    assert [text.rpartition(" again in ")[2] for text in heard.errors] == ["0.05 s", "0.1 s", "0.2 s"]
    assert heard.states == ["restarting"] * 3


async def test_a_run_that_was_well_for_a_while_is_started_again_at_once(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fastqueue.starlette, "HEALTHY", 0.0)
    queue = heard.queue = Queue(Unsteady(claiming=[STRANGER] * 2))
    ran = asyncio.Event()

    @queue.handle("note")
    async def note(number: int) -> None:
        ran.set()

    async with lifespan(queue)(None):
        await note.push(1)
        await asyncio.wait_for(ran.wait(), SOON)
    assert [text.rpartition(" again in ")[2] for text in heard.errors] == ["0.05 s", "0.05 s"]


async def test_the_app_can_stop_while_the_queue_waits_to_be_started_again(heard: Heard) -> None:
    queue = heard.queue = Queue(Unsteady(claiming=[STRANGER] * 100))
    async with lifespan(queue)(None):
        await asyncio.wait_for(heard.first.wait(), SOON)
    assert queue.state == "stopped"


@pytest.mark.parametrize("error", [SchemaMissing("run fastqueue migrate"), ValueError("mistaken")])
def test_what_is_wrong_with_the_store_fails_the_start_of_the_app(error: Exception) -> None:
    store = Unsteady(opening=[error])
    with pytest.raises(type(error), match=str(error)), TestClient(Starlette(lifespan=lifespan(Queue(store)))):
        pass
    assert (store.opened, store.closed) == (0, 1)


async def test_the_app_starts_without_a_store_that_cannot_be_reached_and_jobs_run_when_it_can(heard: Heard) -> None:
    store = Unsteady(opening=[StoreUnavailable("no route")])
    queue = heard.queue = Queue(store)
    ran = asyncio.Event()

    @queue.handle("note")
    async def note(number: int) -> None:
        ran.set()

    async with lifespan(queue)(None):
        assert heard.errors == ["the app starts without the queue's store, which is tried again"]
        await note.push(1)
        await asyncio.wait_for(ran.wait(), SOON)
    assert (store.opened, store.closed) == (1, 1)


async def test_a_queue_in_two_lifespans_of_an_app_fails_its_start() -> None:
    store = Unsteady()
    queue = Queue(store)
    with pytest.raises(RegistrationError, match="runs already"):
        async with lifespan(queue, lifespan(queue))(None):
            pytest.fail("the app started")
    assert store.closed == 1


async def test_a_running_job_has_the_grace_to_end_when_the_app_stops() -> None:
    queue = Queue(MemoryStore(), grace=SOON)
    begun, may_end = asyncio.Event(), asyncio.Event()
    ended: list[int] = []

    @queue.handle("note")
    async def note(number: int) -> None:
        begun.set()
        await may_end.wait()
        ended.append(number)

    async with lifespan(queue)(None):
        await note.push(1)
        await asyncio.wait_for(begun.wait(), SOON)
        asyncio.get_running_loop().call_later(0.01, may_end.set)
    assert ended == [1]


async def test_a_job_that_ignores_its_cancellation_does_not_keep_the_app_from_stopping(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fastqueue.starlette, "RUN_TAIL", 0.05)
    queue = heard.queue = Queue(MemoryStore(), grace=0.01)
    begun, may_end = asyncio.Event(), asyncio.Event()

    @queue.handle("note")
    async def note(number: int) -> None:
        begun.set()
        while not may_end.is_set():
            with suppress(asyncio.CancelledError):
                await may_end.wait()

    async with lifespan(queue)(None):
        await note.push(1)
        await asyncio.wait_for(begun.wait(), SOON)
    assert heard.errors == ["fastqueue did not end within 0.06 s and is left behind; its jobs run again"]
    may_end.set()
    (left,) = [task for task in asyncio.all_tasks() if task.get_name() == "fastqueue"]
    await asyncio.wait({left}, timeout=SOON)
    assert left.cancelled()


async def test_a_store_that_fails_to_close_is_told_of_and_the_app_stops(heard: Heard) -> None:
    log: list[str] = []
    store = Unsteady()
    store.closing = OSError("broken pipe")
    queue = heard.queue = Queue(store)
    async with lifespan(queue, logged(log, "db", None))(None):
        pass
    assert heard.errors == ["fastqueue-close failed while the app stopped"]
    assert log == ["db opens", "db closes"]


async def test_without_run_jobs_are_pushed_here_and_run_elsewhere() -> None:
    store = Unsteady()
    queue = Queue(store)
    ran: list[int] = []

    @queue.handle("note")
    async def note(number: int) -> None:
        ran.append(number)

    async with lifespan(queue, run=False)(None) as state:
        assert state == {"queue": queue}
        assert store.opened == 1
        await note.push(1)
        assert (await queue.health()).state == "elsewhere"
        assert (store.opened, store.closed) == (1, 0)
    assert store.closed == 1
    assert not ran


@pytest.mark.parametrize("route", ["route", "mount"])
def test_the_health_check_answers_503_until_the_queue_runs(route: str) -> None:
    queue = Queue(MemoryStore())
    check = Route("/health", health(queue)) if route == "route" else Mount("/health", health(queue))
    app = Starlette(routes=[check], lifespan=lifespan(queue))
    idle = TestClient(app).get("/health")
    assert (idle.status_code, idle.json()["state"]) == (503, "never started")
    with TestClient(app) as client:
        well = client.get("/health")
    assert (well.status_code, well.json()["state"], well.json()["ready"]) == (200, "running", True)
    assert well.headers["Cache-Control"] == "no-store"


async def test_the_health_check_answers_503_while_the_queue_is_being_stopped() -> None:
    queue, begun, release = Queue(MemoryStore(), grace=20), asyncio.Event(), asyncio.Event()

    @queue.handle("greet")
    async def greet(name: str) -> None:
        begun.set()
        await release.wait()

    app = Starlette(lifespan=lifespan(queue))
    app.add_route("/health", health(queue))
    async with (
        AsyncExitStack() as stack,
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://site") as client,
    ):
        await stack.enter_async_context(app.router.lifespan_context(app))
        await greet.push("Ann")
        async with asyncio.timeout(SOON):
            await begun.wait()
        assert (await client.get("/health")).status_code == 200
        stopping = asyncio.create_task(stack.aclose())
        async with asyncio.timeout(SOON):
            while queue.state != "stopping":  # noqa: ASYNC110  a state tells nobody
                await asyncio.sleep(0.001)
        answer = await client.get("/health")
        assert (answer.status_code, answer.json()["state"], answer.json()["running"]) == (503, "stopping", 1)
        release.set()
        await stopping


def test_the_health_check_says_elsewhere_where_jobs_are_only_pushed() -> None:
    queue = Queue(MemoryStore())
    app = Starlette(lifespan=lifespan(queue, run=False))
    app.add_route("/health", health(queue))
    with TestClient(app) as client:
        answer = client.get("/health")
    assert (answer.status_code, answer.json()["state"]) == (200, "elsewhere")


def test_the_health_check_says_that_a_mounted_apps_queue_never_started() -> None:
    queue = Queue(MemoryStore())
    inner = Starlette(routes=[Route("/health", health(queue))], lifespan=lifespan(queue))
    with TestClient(Starlette(routes=[Mount("/jobs", inner)])) as client:
        answer = client.get("/jobs/health")
    assert (answer.status_code, answer.json()["state"]) == (503, "never started")


async def test_the_health_check_holds_what_a_failing_store_says() -> None:
    queue = Queue(Unsteady(opening=[StoreUnavailable("no route")]))
    app = Starlette(routes=[Route("/health", health(queue))])
    answer = TestClient(app).get("/health")
    assert answer.status_code == 503
    assert "no route" in answer.json()["store"]

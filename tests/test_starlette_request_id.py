"""The ID of a request: in its code, its response, its logs, and the jobs it pushes."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from queue import SimpleQueue

import httpx
import pytest
from fastapi import BackgroundTasks, FastAPI, Request, Response, WebSocket
from fastapi.responses import PlainTextResponse, StreamingResponse
from fastapi.testclient import TestClient
from starlette.datastructures import Headers
from starlette.testclient import WebSocketDenialResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fastqueue.queue import Queue
from fastqueue.starlette import CarryRequestID, RequestIDMiddleware, lifespan, request_id
from fastqueue.stores.memory import MemoryStore

NEW = re.compile(r"[A-Z2-7]{26}")
HEADER = "X-Request-ID"


def ours() -> str:
    return request_id() or "none"


def site() -> tuple[FastAPI, list[str]]:
    """An app without the middleware, and what its background task saw."""
    app, seen = FastAPI(), list[str]()

    @app.get("/async")
    async def in_async_route() -> str:
        return ours()

    @app.get("/sync")
    def in_sync_route() -> str:
        return ours()

    @app.get("/stream/async")
    async def in_async_stream() -> StreamingResponse:
        async def body() -> AsyncGenerator[str]:
            yield ours()

        return StreamingResponse(body())

    @app.get("/stream/sync")
    async def in_sync_stream() -> StreamingResponse:
        def body() -> Iterator[str]:
            yield ours()

        return StreamingResponse(body())

    @app.get("/state")
    async def in_state(request: Request) -> str:
        return str(request.state.request_id)

    @app.get("/background")
    async def in_background(tasks: BackgroundTasks) -> None:
        tasks.add_task(lambda: seen.append(ours()))

    @app.get("/error")
    async def in_error() -> None:
        raise LookupError("unexpected")

    @app.exception_handler(404)
    async def on_404(request: Request, error: Exception) -> Response:
        return PlainTextResponse(ours(), 404)

    @app.exception_handler(Exception)
    async def on_error(request: Request, error: Exception) -> Response:
        return PlainTextResponse(f"{ours()} {request.state.request_id}", 500)

    @app.websocket("/socket")
    async def in_socket(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text(ours())
        await socket.close()

    @app.websocket("/denied")
    async def in_denied(socket: WebSocket) -> None:
        await socket.send_denial_response(PlainTextResponse(ours(), 403))

    return app, seen


def client(app: ASGIApp) -> TestClient:
    return TestClient(app, raise_server_exceptions=False)


@pytest.fixture
def app() -> FastAPI:
    app, _ = site()
    app.add_middleware(RequestIDMiddleware)
    return app


@pytest.mark.parametrize("path", ["/async", "/sync", "/stream/async", "/stream/sync", "/state", "/nowhere"])
def test_a_request_gets_an_id_that_its_code_and_its_response_share(app: FastAPI, path: str) -> None:
    one, two = client(app).get(path), client(app).get(path)
    assert NEW.fullmatch(one.headers[HEADER])
    assert one.text.strip('"') == one.headers[HEADER]
    assert one.headers[HEADER] != two.headers[HEADER]


def test_a_background_task_has_the_id_of_its_request() -> None:
    app, seen = site()
    response = client(RequestIDMiddleware(app)).get("/background")
    assert seen == [response.headers[HEADER]]


def test_a_websocket_has_an_id_and_tells_it_as_it_accepts(app: FastAPI) -> None:
    with client(app).websocket_connect("/socket") as socket:
        text = socket.receive_text()
        assert NEW.fullmatch(text)
        assert Headers(raw=list(socket.extra_headers or ()))[HEADER] == text


def test_a_refused_websocket_is_told_its_id(app: FastAPI) -> None:
    with pytest.raises(WebSocketDenialResponse) as refused, client(app).websocket_connect("/denied"):
        pass
    assert refused.value.headers[HEADER] == refused.value.text


@pytest.mark.parametrize("came", ["a", "abc-123", "Root=1-5759e988:bd86", "-_.:+/=", "x" * 64])
def test_an_id_that_came_with_the_request_is_kept(app: FastAPI, came: str) -> None:
    response = client(app).get("/async", headers={HEADER: came})
    assert response.headers[HEADER] == response.json() == came


@pytest.mark.parametrize(
    "came",
    [
        "",
        "with space",
        "<script>",
        "x" * 65,
        "x" * 8192,
        "a\tb",
        "a,b",
        'a"b',
        "caf\xe9",
        "\xb2",
        "a\x7f",
        "a\nb",
        "a\n",
    ],
)
async def test_an_id_that_could_be_mistaken_for_something_else_is_replaced(came: str) -> None:
    seen, sent = await served(came.encode("latin-1"))
    assert NEW.fullmatch(seen)
    assert sent == seen


async def served(came: bytes) -> tuple[str, str]:
    """The ID that an app saw and the one that was sent, of a request which no client would let pass."""
    seen: list[str] = []
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(ours())
        await send({"type": "http.response.start", "status": 204})

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await RequestIDMiddleware(app)({"type": "http", "headers": [(b"x-request-id", came)]}, receive, send)
    return seen[0], Headers(raw=sent[0]["headers"])[HEADER]


def test_the_header_the_new_ids_and_what_is_kept_can_be_the_apps_own() -> None:
    app, _ = site()
    own = RequestIDMiddleware(app, header="X-Trace", make=lambda: "made here", accept=str.isdigit)
    kept, made = (client(own).get("/async", headers={"X-Trace": came}) for came in ("123", "abc"))
    assert kept.headers["X-Trace"] == kept.json() == "123"
    assert made.headers["X-Trace"] == made.json() == "made here"
    assert HEADER not in kept.headers


def test_the_response_has_the_id_once_whatever_the_route_sets(app: FastAPI) -> None:
    @app.get("/own")
    async def own() -> Response:
        return PlainTextResponse(ours(), headers={HEADER: "another"})

    response = client(app).get("/own")
    assert response.headers.get_list(HEADER) == [response.text]


def test_the_handler_of_unexpected_errors_has_the_id(app: FastAPI) -> None:
    response = client(app).get("/error", headers={HEADER: "abc"})
    assert (response.status_code, response.text) == (500, "abc abc")
    assert HEADER not in response.headers


def test_around_the_whole_app_even_an_unexpected_error_is_answered_with_the_id() -> None:
    app, _ = site()
    response = client(RequestIDMiddleware(app)).get("/error")
    assert response.text == "{0} {0}".format(response.headers[HEADER])


async def test_the_id_is_gone_after_its_request(app: FastAPI) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://site") as direct:
        assert (await direct.get("/async")).json() != "none"
    assert request_id() is None


@pytest.mark.parametrize("ours_is", ["outside", "inside"])
def test_other_middleware_may_stand_on_either_side(ours_is: str) -> None:
    app, _ = site()
    seen: list[str] = []

    async def watch(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await call_next(request)
        seen.append(request.state.request_id)
        return response

    if ours_is == "inside":
        app.add_middleware(RequestIDMiddleware)
    app.middleware("http")(watch)
    if ours_is == "outside":
        app.add_middleware(RequestIDMiddleware)
    response = client(app).get("/async")
    assert [response.json()] == seen == [response.headers[HEADER]]


async def test_the_lifespan_passes_the_middleware_untouched() -> None:
    scopes: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scopes.append(dict(scope))

    async def receive() -> Message:
        return {"type": "lifespan.startup"}

    async def send(message: Message) -> None:
        pytest.fail(f"sent {message}")

    await RequestIDMiddleware(app)({"type": "lifespan"}, receive, send)
    assert scopes == [{"type": "lifespan"}]


@pytest.mark.parametrize("ours_is", ["outside", "inside"])
@pytest.mark.parametrize("path", ["/push", "/push_sync", "/stream", "/stream_sync", "/background"])
def test_a_job_has_the_id_of_the_request_that_pushed_it(path: str, ours_is: str) -> None:
    queue = Queue(MemoryStore(), carry=[CarryRequestID()])
    ran: SimpleQueue[str | None] = SimpleQueue()

    @queue.handle("note")
    async def note(number: int) -> None:
        ran.put(request_id())

    async def others(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        return await call_next(request)

    app = FastAPI(lifespan=lifespan(queue))
    if ours_is == "inside":
        app.add_middleware(RequestIDMiddleware)
    app.middleware("http")(others)
    if ours_is == "outside":
        app.add_middleware(RequestIDMiddleware)

    @app.get("/push")
    async def push() -> None:
        await note.push(1)

    @app.get("/push_sync")
    def push_sync() -> None:
        note.push_sync(1)

    @app.get("/stream")
    async def push_in_stream() -> StreamingResponse:
        async def body() -> AsyncGenerator[str]:
            await note.push(1)
            yield "pushed"

        return StreamingResponse(body())

    @app.get("/stream_sync")
    async def push_in_sync_stream() -> StreamingResponse:
        def body() -> Iterator[str]:
            note.push_sync(1)
            yield "pushed"

        return StreamingResponse(body())

    @app.get("/background")
    async def push_in_background(tasks: BackgroundTasks) -> None:
        tasks.add_task(note.push_sync, 1)

    @app.websocket("/socket")
    async def push_in_socket(socket: WebSocket) -> None:
        await socket.accept()
        await note.push(1)
        await socket.close()

    with TestClient(app) as started:
        for _ in range(2):
            response = started.get(path)
            assert ran.get(timeout=20) == response.headers[HEADER]
        with started.websocket_connect("/socket", headers={HEADER: "from-the-socket"}):
            assert ran.get(timeout=20) == "from-the-socket"


async def test_a_job_pushed_outside_any_request_has_no_id() -> None:
    queue = Queue(MemoryStore(), carry=[CarryRequestID()])
    ran: list[str | None] = []

    @queue.handle("note")
    async def note(number: int) -> None:
        ran.append(request_id())

    async with queue:
        await note.push(1)
        await queue.drain()
    assert ran == [None]


@pytest.mark.parametrize(
    ("carried", "given"),
    [
        ({"request_id": "abc-123"}, "abc-123"),
        ({"request_id": "a b"}, None),
        ({"request_id": "x" * 65}, None),
        ({}, None),
    ],
)
def test_a_stored_id_is_given_to_the_job_only_if_it_is_plain(carried: dict[str, str], given: str | None) -> None:
    with CarryRequestID().running("note", "default", carried, 1):
        assert request_id() == given
    assert request_id() is None

"""At home in Starlette and FastAPI: the queue in an app's lifespan, the ID of a request, a health check.

Example:
    ```python
    queue = Queue("sqlite:///app.db", carry=[CarryRequestID()])
    app = FastAPI(lifespan=lifespan(queue))
    app.add_middleware(RequestIDMiddleware)
    app.add_route("/health", health(queue))
    ```
"""

from __future__ import annotations

import asyncio
import base64
import logging
import re
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
)
from contextvars import Context, ContextVar
from typing import Any, TypeAlias

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fastqueue.carriers import CarryVar
from fastqueue.errors import RegistrationError, StoreUnavailable
from fastqueue.queue import Queue
from fastqueue.worker import SETTLE_BOUND, TAIL

__all__ = ["CarryRequestID", "Lifespan", "RequestIDMiddleware", "combine", "health", "lifespan", "request_id"]

AnyLifespan: TypeAlias = Callable[[Any], AbstractAsyncContextManager[Mapping[str, Any] | None]]
Lifespan: TypeAlias = Callable[[Any], AbstractAsyncContextManager[Mapping[str, Any]]]

log = logging.getLogger("fastqueue")

FIRST_PAUSE, LONGEST_PAUSE, HEALTHY = 0.05, 5.0, 60.0
RUN_TAIL = TAIL + SETTLE_BOUND + 2.0  # beyond the grace, when neither the jobs nor the store answer
CLOSE_BOUND = 12.0


def lifespan(queue: Queue, *others: AnyLifespan, run: bool = True, state: str | None = "queue") -> Lifespan:
    """Run the queue's workers beside the server.

    The store is opened before the app serves: tables that are missing or of another version fail the start, while a
    store that cannot be reached is tried again as long as the app lives. Should a run end by an unexpected error, it
    is logged and started again, and the app serves on. At the end running jobs have the queue's `grace`; what is left
    of them is put back, and the store is closed. None of this is bound to an event loop: an app may be started again.

    A server runs the lifespan of its outermost app and of the routers included there, and of no mounted app.

    Args:
        queue: The queue.
        others: Lifespans that the jobs need: opened before the queue, in this order, and closed after it.
        run: Whether jobs run in this process. False: they are only pushed here; `health` says "elsewhere". Default
            True.
        state: The name of the queue in `request.state`, beside what the others yield. None: it is not there. Default
            "queue".

    Returns:
        What `FastAPI`, `Starlette` and `APIRouter` take as `lifespan=`.

    Raises:
        SchemaMissing: at the app's start, with the command that makes the tables.
        SchemaTooOld: at the app's start, with the command that upgrades them.
        SchemaTooNew: at the app's start.
        RegistrationError: at the app's start: the queue runs already, in another lifespan.

    Example:
        >>> from starlette.applications import Starlette
        >>> app = Starlette(lifespan=lifespan(Queue("memory://")))
    """

    @asynccontextmanager
    async def own(app: Any) -> AsyncGenerator[Mapping[str, Any]]:
        # Opened here even where nothing runs: a first push inside a transaction could not make the tables beside it.
        await _opened(queue)
        workers = await _started(queue) if run and queue.store.for_workers else None
        if workers is None:
            queue.state = "elsewhere"
        try:
            yield {} if state is None else {state: queue}
        finally:
            if workers is not None:
                await _stopped(queue, workers)
            await _closed(queue)

    return combine(*others, own)


def combine(*lifespans: AnyLifespan) -> Lifespan:
    """Make one lifespan of several: opened in this order, closed in the reverse, their states merged.

    Args:
        lifespans: The outermost first. Of a name in two states the later counts.

    Example:
        >>> from starlette.applications import Starlette
        >>> mail, reports = Queue("memory://"), Queue("memory://")
        >>> app = Starlette(lifespan=combine(lifespan(mail, state="mail"), lifespan(reports, state="reports")))
    """

    @asynccontextmanager
    async def combined(app: Any) -> AsyncGenerator[Mapping[str, Any]]:
        async with AsyncExitStack() as stack:
            merged: dict[str, Any] = {}
            for each in lifespans:
                yielded = await stack.enter_async_context(each(app))
                merged.update(yielded or {})
            yield merged

    return combined


async def _opened(queue: Queue) -> None:
    """Open the store; one that cannot be reached is tried again later, one that cannot be used ends the start."""
    try:
        await queue.ready()
    except StoreUnavailable as error:
        log.error("the app starts without the queue's store, which is tried again", exc_info=error)
    except BaseException:
        await _closed(queue)
        raise


async def _started(queue: Queue) -> asyncio.Task[None]:
    """Start the workers."""
    # In an empty context: a span or an ID that the start's context holds would be every job's.
    workers = asyncio.get_running_loop().create_task(_keep_running(queue), name="fastqueue", context=Context())
    await asyncio.sleep(0)
    if workers.done():
        await workers
    return workers


async def _keep_running(queue: Queue) -> None:
    """Run the queue until this task is cancelled, whatever happens to the run."""
    this, clock = asyncio.current_task(), asyncio.get_running_loop().time
    pause = FIRST_PAUSE
    while True:
        begun = clock()
        try:
            return await queue.run()
        except RegistrationError:
            raise
        except (Exception, asyncio.CancelledError):
            if this is None or this.cancelling():
                raise
            if clock() - begun >= HEALTHY:
                pause = FIRST_PAUSE
            queue.state = "restarting"
            log.exception("the queue stopped by an unexpected error; it is started again in %g s", pause)
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


async def _stopped(queue: Queue, workers: asyncio.Task[None]) -> None:
    """Stop the workers; a grace of 0 leaves each job its own time limit, so nothing bounds it here."""
    workers.cancel()
    await _ended(workers, queue.grace + RUN_TAIL if queue.grace else None)
    queue.state = "stopped"


async def _closed(queue: Queue) -> None:
    """Close the store."""
    await _ended(asyncio.create_task(queue.close(), name="fastqueue-close"), CLOSE_BOUND)


async def _ended(task: asyncio.Task[None], bound: float | None) -> None:
    """Wait for a task, but not for ever, and tell what went wrong; the app's stop goes on."""
    await asyncio.wait({task}, timeout=bound)  # wait_for would itself wait for a task that ignores its cancellation
    if not task.done():
        log.error("%s did not end within %g s and is left behind; its jobs run again", task.get_name(), bound)
    elif not task.cancelled() and (error := task.exception()):
        log.error("%s failed while the app stopped", task.get_name(), exc_info=error)


_current: ContextVar[str | None] = ContextVar("fastqueue_request_id", default=None)
_PLAIN = re.compile(r"[A-Za-z0-9_.:+/=-]{1,64}")


def request_id() -> str | None:
    """The ID of the request, or of the request that pushed the job, that this code runs for; None: there is none.

    Example:
        >>> request_id() is None
        True
    """
    return _current.get()


def _is_plain(text: str) -> bool:
    """Whether a text may stand in a log line as an ID: it is short, and cannot pass for anything else."""
    return _PLAIN.fullmatch(text) is not None


def _new_id() -> str:
    """An ID of 130 random bits: 26 characters of A-Z and 2-7."""
    return base64.b32encode(secrets.token_bytes(17)).decode()[:26]


class RequestIDMiddleware:
    """Gives each request and websocket an ID: in `request_id()`, `request.state.request_id` and the response's header.

    The ID that came with the request is kept if it is acceptable; else it gets a new one. After an error it stays set,
    so that the handler of unexpected errors and the server's log, which come after all middleware, still have it. Only
    `RequestIDMiddleware(app)`, around the whole app, can put it into the header of that handler's response too.

    Args:
        app: The app.
        header: The header that it comes in and goes out by. Default "X-Request-ID".
        make: Makes a new ID. Default: 26 random characters of A-Z and 2-7.
        accept: Whether an ID that came in is kept. Default: it has 1 to 64 characters, letters, digits or `-_.:+/=`.

    Example:
        >>> from starlette.applications import Starlette
        >>> app = Starlette()
        >>> app.add_middleware(RequestIDMiddleware)
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        header: str = "X-Request-ID",
        make: Callable[[], str] = _new_id,
        accept: Callable[[str], object] = _is_plain,
    ) -> None:
        self.app = app
        self.header = header
        self.make = make
        self.accept = accept

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request or websocket under its ID; pass anything else on."""
        if scope["type"] not in ("http", "websocket"):
            return await self.app(scope, receive, send)
        came = Headers(scope=scope).get(self.header)
        ours = came if came is not None and self.accept(came) else self.make()

        async def send_with_id(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.accept", "websocket.http.response.start"):
                message.setdefault("headers", [])
                MutableHeaders(scope=message)[self.header] = ours
            await send(message)

        scope.setdefault("state", {})["request_id"] = ours
        before = _current.set(ours)
        await self.app(scope, receive, send_with_id)
        _current.reset(before)  # not in a finally: see the class
        return None


class CarryRequestID:
    """Carries the request's ID, so that `request_id()` in a job is that of the request that pushed it.

    A stored ID that `RequestIDMiddleware` would not keep by default is not given back.

    Example:
        >>> queue = Queue("memory://", carry=[CarryRequestID()])
    """

    name = "request_id"

    def __init__(self) -> None:
        self._carry = CarryVar(_current, name=self.name)

    def pushing(self, kind: str, queue: str, carried: dict[str, str], count: int, /) -> AbstractContextManager[None]:
        """Take the ID along."""
        return self._carry.pushing(kind, queue, carried, count)

    def running(
        self, kind: str, queue: str, carried: Mapping[str, str], attempt: int, /
    ) -> AbstractContextManager[None]:
        """Set the ID for the run."""
        if _is_plain(carried.get(self.name, "")):
            return self._carry.running(kind, queue, carried, attempt)
        return nullcontext()


class _HealthCheck:
    """Answers a health check; an ASGI app."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        health = await self._queue.health()
        response = JSONResponse(
            health.as_dict(), status_code=200 if health.ready else 503, headers={"Cache-Control": "no-store"}
        )
        await response(scope, receive, send)


def health(queue: Queue) -> Any:
    """A health check for load balancers and people on call: 200 when the queue is ready, else 503, and why as JSON.

    It names the kinds that wait without a handler and the store's error: do not serve it to the public.

    Args:
        queue: The queue.

    Returns:
        An ASGI app, for `app.add_route`, `Route` and `Mount`. (Typed as Any: Starlette's routes take an ASGI app, and
        their types know functions of a request only.)

    Example:
        >>> from starlette.applications import Starlette
        >>> app = Starlette()
        >>> app.add_route("/health", health(Queue("memory://")))
    """
    return _HealthCheck(queue)

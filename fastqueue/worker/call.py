"""Calling a handler: on the event loop, or in a thread of its own when it is a plain function."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any

__all__ = ["HandlerThread", "call", "in_thread"]


class HandlerThread(threading.Thread):
    """The thread of one plain handler; a daemon, since a handler that never returns must not keep the process."""


def call(function: Callable[..., Any], is_async: bool, *args: Any) -> Awaitable[Any]:
    """Call a function of either sort; what is answered is to be awaited, until its end."""
    return function(*args) if is_async else _to_its_end(in_thread(function, *args))


async def _to_its_end(answering: Awaitable[Any]) -> None:
    """Wait for the answer of a plain function, and for that too if it can be awaited."""
    answer = await answering
    if isinstance(answer, Awaitable):
        await answer


async def in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """The answer of a plain function, run in a thread with this task's context.

    Nothing can interrupt it: a cancelled caller leaves the thread running, and its answer goes nowhere.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Any] = loop.create_future()
    context = copy_context()

    def tell(answer: Any, error: BaseException | None) -> None:
        if ended.done():
            return
        if error is None:
            ended.set_result(answer)
        else:
            ended.set_exception(error)

    def body() -> None:
        answer, error = None, None
        try:
            answer = context.run(function, *args)
        except BaseException as raised:
            # StopIteration cannot be set on a future, and the rest must not end the thread unseen.
            error = RuntimeError(f"handler raised {raised!r}") if isinstance(raised, StopIteration) else raised
        try:
            loop.call_soon_threadsafe(tell, answer, error)
        except RuntimeError:
            return  # the loop has gone, and whoever waited with it

    HandlerThread(target=body, name="fastqueue-handler", daemon=True).start()
    return await ended

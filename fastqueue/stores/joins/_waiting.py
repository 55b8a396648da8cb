"""What waits for a commit: what to call then, and how many jobs hang on it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias

__all__ = ["Calls", "committed", "rolled_back", "telling", "wait_for"]

_logger = logging.getLogger("fastqueue")

Calls: TypeAlias = "Counter[Callable[[], None]]"
"""What to call, and how many jobs hang on it."""

_open: dict[int, Calls] = {}
"""What waits for the transactions of stores' own, by the connections that they are on."""


@contextmanager
def telling(connection: object, calls: Calls) -> Generator[None]:
    """Around a transaction on a connection of a store's own: what waits for its commit is put into `calls`."""
    _open[id(connection)] = calls
    try:
        yield
    finally:
        del _open[id(connection)]


def wait_for(connection: object, call: Callable[[], None], *, pushed: int) -> bool:
    """Have `call` called once the transaction on a connection has committed; False: nobody tells of it."""
    calls = _open.get(id(connection))
    if calls is None:
        return False
    calls[call] += pushed
    return True


def committed(calls: Calls) -> None:
    """Call what waited for a commit."""
    for call in calls:
        try:
            call()
        except Exception:
            _logger.exception("the transaction was committed, but %r after it failed", call)


def rolled_back(calls: Calls) -> None:
    """Say how many jobs went."""
    count = calls.total()
    if count:
        _logger.info("%d %s went with the transaction that was rolled back", count, "job" if count == 1 else "jobs")

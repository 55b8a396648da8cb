"""The faculty of a store that can push inside the app's transactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from fastqueue.store import Enlisted, Joins
from fastqueue.stores.joins._handles import driver_of, plain_of, refusal, unwrapped
from fastqueue.stores.joins._homes import Home
from fastqueue.stores.joins._sqlalchemy import InSQLAlchemy
from fastqueue.stores.joins._waiting import Calls, committed, rolled_back, telling

__all__ = ["SQLJoins"]


class SQLJoins(Joins):
    """Pushes to the tables of `home`, through whatever the app holds a transaction on their database by."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def enlist(self, handle: object) -> Enlisted:
        handle = unwrapped(handle)
        plain = plain_of(handle)
        if plain is not None:
            return InSQLAlchemy(self._home, handle, plain)
        driver = driver_of(handle)
        if driver is None:
            raise refusal(handle)
        return driver(self._home, handle)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Any]:
        calls: Calls = Counter()
        try:
            async with self._home.transaction() as connection:
                with telling(connection, calls):
                    yield connection
        except BaseException:
            rolled_back(calls)
            raise
        committed(calls)

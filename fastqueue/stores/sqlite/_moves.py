"""Moves: whoever writes is alone in the file, so nothing needs to be locked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from fastqueue.stores._moves import Key, SQLMoves
from fastqueue.stores._sql import Statements, Steps, run_sync
from fastqueue.stores.sqlite._access import Access
from fastqueue.stores.sqlite._push import portions

__all__ = ["SQLiteMoves"]

R = TypeVar("R")


class SQLiteMoves(SQLMoves):
    """Jobs that leave and arrive."""

    def __init__(self, access: Access, statements: Statements, identity: Callable[[], Awaitable[str]]) -> None:
        super().__init__(statements, identity)
        self._access = access

    async def _together(self, steps: Callable[[], Steps[R]]) -> R:
        return await self._access.write(lambda database: run_sync(steps(), database.execute))

    def _waiting(self, keys: Sequence[Key]) -> Steps[set[Key]]:
        waiting: set[Key] = set()
        for kind, key in keys:
            got = yield self._call("push.waiting", kind=kind, unique_key=key)
            if got.rows:
                waiting.add((kind, key))
        return waiting

    def _keep(self, rows: Sequence[Mapping[str, Any]]) -> Steps[None]:
        for portion in portions(rows):
            yield self._statements["moves.arrive"].for_rows(portion)

"""Moves: nobody pushes while jobs arrive, and their ids are taken from the sequence first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from fastqueue.stores._moves import Key, SQLMoves
from fastqueue.stores._sql import Call, Steps, run
from fastqueue.stores.postgres._access import Access
from fastqueue.stores.postgres._connections import executor

__all__ = ["PostgresMoves"]

R = TypeVar("R")


class PostgresMoves(SQLMoves):
    """Jobs that leave and arrive."""

    def __init__(self, access: Access, identity: Callable[[], Awaitable[str]]) -> None:
        super().__init__(access.statements, identity)
        self._access = access

    async def _together(self, steps: Callable[[], Steps[R]]) -> R:
        async with self._access.here.others.borrow() as connection, connection.transaction():
            return await run(steps(), executor(connection))

    def _waiting(self, keys: Sequence[Key]) -> Steps[set[Key]]:
        waiting: set[Key] = set()
        for kind, key in keys:
            got = yield self._call("moves.waiting", kind=kind, unique_key=key)
            if got.rows:
                waiting.add((kind, key))
        return waiting

    def _alone(self, last: int) -> Steps[None]:
        yield self._call("moves.alone")
        yield self._call("moves.ids", last=last)

    def _keep(self, rows: Sequence[Mapping[str, Any]]) -> Steps[None]:
        yield Call(self._statements["moves.arrive"], {column: [row[column] for row in rows] for column in rows[0]})

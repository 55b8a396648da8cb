"""Moves: nobody pushes while jobs arrive, and their ids are taken from the sequence first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastqueue.stores._sql import Steps
from fastqueue.stores._sql_moves import SQLMoves
from fastqueue.stores.postgres._access import Access

__all__ = ["PostgresMoves"]


class PostgresMoves(SQLMoves[Access]):
    """Jobs that leave and arrive."""

    def _alone(self, last: int) -> Steps[None]:
        yield self._call("moves.alone")
        yield self._call("moves.ids", last=last)

    def _keep(self, rows: Sequence[Mapping[str, Any]]) -> Steps[None]:
        yield self._call("moves.arrive", **{column: [row[column] for row in rows] for column in rows[0]})

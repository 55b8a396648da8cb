"""Moves: whoever writes is alone in the file, so nothing needs to be locked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastqueue.stores._sql import Steps
from fastqueue.stores._sql_moves import SQLMoves
from fastqueue.stores.sqlite._access import Access
from fastqueue.stores.sqlite._push import portions

__all__ = ["SQLiteMoves"]


class SQLiteMoves(SQLMoves[Access]):
    """Jobs that leave and arrive."""

    def _keep(self, rows: Sequence[Mapping[str, Any]]) -> Steps[None]:
        for portion in portions(rows):
            yield self._access.statements["moves.arrive"].for_rows(portion)

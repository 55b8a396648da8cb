"""Moves: keys are looked for under the locks of their slots, and lanes are there before their jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastqueue.moves import MovedJob
from fastqueue.stores._sql import Call, Steps
from fastqueue.stores._sql_moves import Key, SQLMoves
from fastqueue.stores.mysql._access import Access
from fastqueue.stores.mysql._lanes import Lanes
from fastqueue.stores.mysql._push import lock_slots, look

__all__ = ["MySQLMoves"]

CHARACTERS = 1_000_000
"""The most characters of one insert: the server refuses statements of more than 16 MiB."""


class MySQLMoves(SQLMoves[Access]):
    """Jobs that leave and arrive."""

    def __init__(self, access: Access, lanes: Lanes) -> None:
        super().__init__(access)
        self._lanes = lanes

    async def _ready(self, jobs: Sequence[MovedJob]) -> None:
        await self._lanes.ready(jobs)

    def _waiting(self, keys: Sequence[Key]) -> Steps[set[Key]]:
        yield from lock_slots(self._access.statements, keys)
        return set((yield from look(self._access.statements, keys)).values())

    def _keep(self, rows: Sequence[Mapping[str, Any]]) -> Steps[None]:
        portion: list[Mapping[str, Any]] = []
        characters = 0
        for row in rows:
            size = sum(len(value) for value in row.values() if isinstance(value, str))
            if portion and characters + size > CHARACTERS:
                yield Call(self._access.statements["moves.arrive"], {"rows": portion})
                portion, characters = [], 0
            portion.append(row)
            characters += size
        yield Call(self._access.statements["moves.arrive"], {"rows": portion})

"""Jobs that leave for another store: a shelf of their own, and a number for each portion."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

from fastqueue.errors import MoveRefused
from fastqueue.job import Moment
from fastqueue.moves import MovedJob, Moves, Portion
from fastqueue.stores.redis._access import Access
from fastqueue.stores.redis._rows import Argument, arrived, moved

__all__ = ["RedisMoves"]


class RedisMoves(Moves):
    """Jobs that leave and arrive."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def identity(self) -> str:
        new = uuid4().hex
        return await self._access.call("SET", self._access.root + "identity", new, "NX", "GET") or new

    async def leave(self, to: str, *, now: Moment, limit: int) -> Portion | None:
        found = await self._access.run("leave", to, now, limit)
        if not found:
            return None
        number, jobs = found
        if not number:
            raise MoveRefused(
                f"a portion is on its way to another store, with the identity {jobs}: finish that move first"
            )
        return Portion(number, [moved(id, flat) for id, flat in jobs])

    async def left(self, number: int) -> None:
        await self._access.run("left", number)

    async def arrive(self, portion: Portion, *, origin: str) -> bool:
        jobs: list[MovedJob] = portion.jobs
        arguments: list[Argument] = [part for job in jobs for part in arrived(job)]
        return bool(await self._access.run("arrive", origin, portion.number, *arguments))

    async def record(self, runs: Mapping[str, Moment]) -> None:
        if runs:
            pairs = [part for name, run_at in runs.items() for part in (run_at, name)]
            await self._access.call("ZADD", self._access.root + "runs", "GT", *pairs)

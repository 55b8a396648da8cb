"""What is to be said of a Redis server that the store works with."""

from __future__ import annotations

from collections.abc import Mapping

from fastqueue.errors import StoreUnavailable
from fastqueue.finding import Finding, Inspects
from fastqueue.stores._limits import Limit, connections_finding
from fastqueue.stores.redis._access import Access
from fastqueue.stores.redis._server import info_of

__all__ = ["RedisInspects"]

BESIDES = 1
"""Connections that a store opens besides those of `pool_size`."""

NEARLY_FULL = 0.9


class RedisInspects(Inspects):
    """Looks at what a crash of the server would take, and at its limits."""

    def __init__(self, access: Access, *, size: int) -> None:
        self._access = access
        self._most = size + BESIDES

    async def inspect(self) -> list[Finding]:
        info = await info_of(self._access)
        if not info:
            return [Finding.warning("server", "its user may not ask INFO", "let the user ask INFO")]
        clients = Limit("the server's maxclients", int(info["maxclients"]), int(info["connected_clients"]))
        return [
            Finding("server", f"Redis {info['redis_version']}"),
            await self._durability(info),
            _memory(info),
            connections_finding([clients], most=self._most),
        ]

    async def _durability(self, info: Mapping[str, str]) -> Finding:
        about = "durability"
        if info["aof_enabled"] == "0":
            return Finding.warning(
                about,
                "there is none: a crash of the server takes the jobs of the last minutes, or all",
                "set appendonly yes",
            )
        try:
            _, flushed = await self._access.call("CONFIG", "GET", "appendfsync")
        except StoreUnavailable:  # managed servers do not let their users ask
            return Finding(about, "there is one")
        if flushed == "no":
            text = "appendfsync no: a crash of the machine takes about the last half minute"
            return Finding.warning(about, text, "set appendfsync everysec, or always")
        loses = (
            "nothing that was answered is lost in a crash"
            if flushed == "always"
            else "a crash may take the last second"
        )
        return Finding(about, f"appendfsync {flushed}: {loses}")


def _memory(info: Mapping[str, str]) -> Finding:
    used, most = int(info["used_memory"]), int(info["maxmemory"])
    if not most:
        return Finding("memory", f"{_megabytes(used)} are used, and there is no maxmemory")
    text = f"{_megabytes(used)} of {_megabytes(most)} are used"
    if used < NEARLY_FULL * most:
        return Finding("memory", text)
    return Finding.warning("memory", f"{text}: pushes are refused when it is full", "raise maxmemory, or add workers")


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB"

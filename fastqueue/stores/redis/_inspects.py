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
"""The part of its memory in use from which a server is nearly full."""

_DURABILITY = "durability"

_FLUSHED = {
    "always": ("a crash takes nothing that was answered", ""),
    "everysec": ("a crash may take the last second", ""),
    "no": ("a crash of the machine takes about the last half minute", "set appendfsync everysec, or always"),
}


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
        if info.get("aof_enabled") != "1":
            text = "no append-only file is kept: a crash of the server takes the jobs of the last minutes, or all"
            return Finding.warning(_DURABILITY, text, "set appendonly yes")
        try:
            _, flushed = await self._access.call("CONFIG", "GET", "appendfsync")
        except StoreUnavailable:  # managed servers do not let their users ask
            return Finding(_DURABILITY, "an append-only file is kept")
        text, remedy = _FLUSHED[flushed]
        text = f"an append-only file is kept, with appendfsync {flushed}: {text}"
        return Finding.warning(_DURABILITY, text, remedy) if remedy else Finding(_DURABILITY, text)


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

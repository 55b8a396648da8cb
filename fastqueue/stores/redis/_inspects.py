"""What is to be said of a Redis server that the store works with; what it refuses is said when it opens."""

from __future__ import annotations

from fastqueue.finding import Finding, Inspects
from fastqueue.stores._limits import Limit, connections_finding
from fastqueue.stores.redis._access import Access
from fastqueue.stores.redis._server import info_of

__all__ = ["RedisInspects"]

BESIDES = 1
"""Connections that a store opens besides those of `pool_size`."""


class RedisInspects(Inspects):
    """Looks at what outlasts a crash of the server, and at its limit."""

    def __init__(self, access: Access, *, size: int) -> None:
        self._access = access
        self._most = size + BESIDES

    async def inspect(self) -> list[Finding]:
        info = await info_of(self._access)
        if not info:
            return [
                Finding.warning(
                    "server",
                    "its user may not ask INFO, so its settings are not looked at",
                    "let the user ask INFO; set maxmemory-policy noeviction and appendonly yes",
                )
            ]
        findings = [Finding("server", f"Redis {info['redis_version']}"), _durability(info)]
        if "maxclients" in info:
            limit = Limit("the server's maxclients", int(info["maxclients"]), int(info["connected_clients"]))
            findings.append(connections_finding([limit], most=self._most))
        return findings


def _durability(info: dict[str, str]) -> Finding:
    if info.get("aof_enabled") == "1":
        return Finding("durability", "the append-only file is on")
    return Finding.warning(
        "durability",
        "no append-only file is kept: a crash of the server loses the jobs of the last minutes, or all",
        "set appendonly yes, and appendfsync always if not a second of pushes may be lost",
    )

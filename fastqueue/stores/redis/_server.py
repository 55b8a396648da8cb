"""What a server must be for jobs to be safe on it, looked at when the store is opened."""

from __future__ import annotations

import logging

from fastqueue.errors import OptionError, SchemaTooNew, StoreUnavailable
from fastqueue.stores.redis._access import Access

__all__ = ["check", "info_of"]

log = logging.getLogger("fastqueue")

LAYOUT = 1
"""The number of the arrangement of keys that this version knows."""


async def check(access: Access) -> None:
    """Refuse a server that would lose jobs or cannot keep them, and keys of a newer version; warn of what may be lost.

    Raises:
        OptionError: a setting of the server's.
        SchemaTooNew: the keys.
    """
    info = await info_of(access)
    if not info:
        log.warning(
            "Redis at %s does not let its user ask INFO, so its settings are not checked: "
            "it needs maxmemory-policy noeviction and appendonly yes",
            access.address.shown,
        )
    where = f"Redis at {access.address.shown}"
    version = info.get("redis_version", "7")
    if int(version.partition(".")[0]) < 7:
        raise OptionError(f"{where} is version {version}; the store needs 7 or newer")
    if info.get("cluster_enabled") == "1":
        raise OptionError(f"{where} is a cluster; give the store a single server, or one with replicas")
    policy = info.get("maxmemory_policy", "noeviction")
    if policy.startswith("allkeys"):
        raise OptionError(
            f"{where} has maxmemory-policy {policy}, by which jobs would vanish when memory is short; "
            "set it to noeviction, or give jobs a server of their own"
        )
    if info.get("aof_enabled") == "0":
        log.warning(
            "%s keeps no append-only file: when it crashes, the jobs of the last minutes are lost, or all; "
            "set appendonly yes",
            where,
        )
    layout = await access.call("SET", access.root + "layout", LAYOUT, "NX", "GET")
    if layout is not None and int(layout) > LAYOUT:
        raise SchemaTooNew(
            f"the keys {access.root}* on {where} are of layout {layout} and this version of fastqueue knows {LAYOUT}: "
            "install the newer version here too, or give this app a prefix of its own"
        )


async def info_of(access: Access) -> dict[str, str]:
    """What the server says of itself; nothing, if it does not say."""
    from redis.exceptions import NoPermissionError

    try:
        text: str = await access.call("INFO")
    except StoreUnavailable as error:
        if isinstance(error.__cause__, NoPermissionError):
            return {}
        raise
    lines = (line.partition(":") for line in text.splitlines())
    return {name: value for name, colon, value in lines if colon}

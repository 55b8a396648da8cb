"""What is to be said of a MySQL or MariaDB server that the store works with."""

from __future__ import annotations

from fastqueue.finding import Finding, Inspects
from fastqueue.stores._limits import Limit, connections_finding
from fastqueue.stores._sql import Call, Statement
from fastqueue.stores.mysql._access import Access

__all__ = ["MySQLInspects"]

BESIDES = 3
"""Connections that a store opens besides those of `pool_size`."""

_LIMITS = Call(
    Statement("inspect.limits", "SELECT @@max_connections, @@max_user_connections, CURRENT_USER(), @@version"), {}
)
_CONNECTED = Call(Statement("inspect.connected", "SHOW GLOBAL STATUS LIKE 'Threads_connected'"), {})
_OWN = Call(
    Statement(
        "inspect.own",
        "SELECT COUNT(*) FROM information_schema.processlist WHERE user = SUBSTRING_INDEX(CURRENT_USER(), '@', 1)",
    ),
    {},
)


class MySQLInspects(Inspects):
    """Looks at the server's limits."""

    def __init__(self, access: Access, *, size: int) -> None:
        self._access = access
        self._most = size + BESIDES

    async def inspect(self) -> list[Finding]:
        async with self._access.here.others.statements() as execute:
            ((of_server, of_account, account, version),) = (await execute(_LIMITS)).rows
            ((_, connected),) = (await execute(_CONNECTED)).rows
            ((own,),) = (await execute(_OWN)).rows
        limits = [Limit("the server's max_connections", of_server, int(connected))]
        if of_account:  # 0 is none
            limits.append(Limit(f"max_user_connections of {account}", of_account, own))
        return [Finding("server", str(version)), connections_finding(limits, most=self._most)]

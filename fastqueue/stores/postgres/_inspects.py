"""What is to be said of a PostgreSQL server that the store works with."""

from __future__ import annotations

from fastqueue.errors import StoreUnavailable
from fastqueue.finding import Finding, Inspects
from fastqueue.stores._limits import Limit, connections_finding
from fastqueue.stores._sql import Call, Statement
from fastqueue.stores.postgres._access import Access
from fastqueue.stores.postgres._wakes import PostgresWakes

__all__ = ["PostgresInspects"]

BESIDES = 4
"""Connections that a store opens besides those of `pool_size`."""

_LIMITS = Statement(
    "inspect.limits",
    """
    SELECT current_setting('max_connections')::int
           - current_setting('superuser_reserved_connections')::int * (NOT me.rolsuper)::int,
           (SELECT sum(numbackends) FROM pg_stat_database),
           me.rolsuper, current_user::text,
           me.rolconnlimit, (SELECT count(*) FROM pg_stat_activity WHERE usename = current_user),
           here.datname::text, here.datconnlimit,
           (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database())
      FROM pg_roles me, pg_database here
     WHERE me.rolname = current_user AND here.datname = current_database()
    """,
)


class PostgresInspects(Inspects):
    """Looks at the server's limits, and whether notices arrive."""

    def __init__(self, access: Access, wakes: PostgresWakes, *, size: int) -> None:
        self._access = access
        self._wakes = wakes
        self._most = size + BESIDES

    async def inspect(self) -> list[Finding]:
        return [await self._connections(), await self._notices()]

    async def _connections(self) -> Finding:
        ((allows, used, is_super, role, by_role, of_role, database, by_database, in_database),) = (
            await self._access.here.others.run(Call(_LIMITS, {}))
        ).rows
        limits = [Limit("the server's max_connections", allows, int(used))]
        # Neither holds for a superuser; -1 is none.
        if by_role >= 0 and not is_super:
            limits.append(Limit(f"the CONNECTION LIMIT of the role {role!r}", by_role, of_role))
        if by_database >= 0 and not is_super:
            limits.append(Limit(f"the CONNECTION LIMIT of the database {database!r}", by_database, in_database))
        return connections_finding(limits, most=self._most)

    async def _notices(self) -> Finding:
        try:
            if await self._wakes.hears():
                return Finding("notices", "a notice that was sent came back: jobs of other processes start at once")
            what = "a notice that was sent did not come back"
        except StoreUnavailable as error:
            what = f"there is no listening for them: {error}"
        return Finding.warning(
            "notices",
            f"{what}: jobs that other processes push are found by polling",
            "give the store listen_dsn, the address of this database on the server itself, past any pooler",
        )

"""The store's tables: made and upgraded in one transaction, under a lock that other instances wait for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fastqueue.store import Migrates
from fastqueue.stores import _migrations
from fastqueue.stores._sql import Call, Statement, run
from fastqueue.stores.postgres._access import Access
from fastqueue.stores.postgres._connections import executor

if TYPE_CHECKING:
    from asyncpg import Connection

__all__ = ["PostgresMigrates"]


class PostgresMigrates(Migrates):
    """The migrations of one set of tables; it connects when the store is not open."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._known = _migrations.load("postgres", access.tables)
        self.latest = self._known[-1].number

    async def current(self) -> int:
        async with self._access.here.others.borrow() as connection:
            return await self._current(connection)

    async def migrate(self) -> list[int]:
        tables, statements = self._access.tables, self._access.statements
        async with self._access.here.others.borrow() as connection:
            if not _migrations.missing(self._known, await self._current(connection), tables):
                return []
            execute = executor(connection)
            # Whatever goes wrong before COMMIT: a connection that comes back in a transaction is closed.
            await connection.execute("BEGIN")
            await execute(Call(statements["meta.lock"], {"name": tables.quoted("migrations")}))
            missing = _migrations.missing(self._known, await self._current(connection), tables)
            if missing and not await self._schema_is_there(connection):
                await execute(Call(Statement("meta.schema", self._create_schema()), {}))
            now = time.time_ns() // 1_000_000
            applied = await run(_migrations.apply(missing, record=statements["meta.record"], now=now), execute)
            await connection.execute("COMMIT")
            return applied

    async def check(self) -> None:
        """Refuse tables that are not at the latest migration.

        Raises:
            SchemaMissing, SchemaTooOld, SchemaTooNew: they are not.
        """
        _migrations.require_latest(self._known, await self.current(), self._access.tables)

    def sql(self, *, since: int = 0) -> str:
        later = [migration for migration in self._known if migration.number > since]
        now = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
        schema = f"{self._create_schema()};\n\n" if since == 0 and self._access.tables.schema else ""
        return schema + _migrations.sql_text(later, self._access.tables, now=now)

    def _create_schema(self) -> str:
        return f'CREATE SCHEMA IF NOT EXISTS "{self._access.tables.schema}"'

    async def _schema_is_there(self, connection: Connection) -> bool:
        schema = self._access.tables.schema
        quoted = None if schema is None else f'"{schema}"'
        got = await executor(connection)(Call(self._access.statements["meta.schema"], {"schema": quoted}))
        return bool(got.rows[0][0])

    async def _current(self, connection: Connection) -> int:
        execute, statements = executor(connection), self._access.statements
        got = await execute(Call(statements["meta.tables"], {"name": self._access.tables.quoted("migrations")}))
        if not got.rows[0][0]:
            return 0
        got = await execute(Call(statements["meta.current"], {}))
        return int(got.rows[0][0])

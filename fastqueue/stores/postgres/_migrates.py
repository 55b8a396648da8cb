"""The store's tables: made and upgraded in one transaction, under a lock that other instances wait for."""

from __future__ import annotations

from fastqueue.stores._sql import Call, Statement, Steps
from fastqueue.stores._sql_migrates import SQLMigrates
from fastqueue.stores.postgres._access import Access

__all__ = ["PostgresMigrates"]


class PostgresMigrates(SQLMigrates[Access]):
    """The migrations of one set of tables, and their schema; it connects when the store is not open."""

    now = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

    def sql(self, *, since: int = 0) -> str:
        schema = f"{self._create_schema()};\n\n" if since == 0 and self._access.tables.schema else ""
        return schema + super().sql(since=since)

    def _apply(self) -> Steps[list[int]]:
        tables, statements = self._access.tables, self._access.statements
        yield Call(statements["meta.lock"], {"name": self._table()})
        got = yield Call(statements["meta.schema"], {"schema": tables.schema and f'"{tables.schema}"'})
        if not got.rows[0][0]:
            yield Call(Statement("meta.schema", self._create_schema()), {})
        return (yield from super()._apply())

    def _create_schema(self) -> str:
        return f'CREATE SCHEMA IF NOT EXISTS "{self._access.tables.schema}"'

    def _table(self) -> str:
        return self._access.tables.quoted("migrations")

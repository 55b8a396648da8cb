"""The PostgreSQL store keeps every promise of the contract, on two majors of the server, and behind a pooler."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from urllib.parse import urlsplit

import asyncpg
import pytest

from fastqueue.stores.postgres import PostgresStore
from fastqueue.testing import Begin, MakeStore, StoreContract
from tests.servers import postgres

_schemas = count(1)
"""Each test has a schema of its own, which is made quicker than a database."""


@pytest.fixture(scope="module")
def database(postgres_server: str) -> Iterator[str]:
    with postgres.fresh_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="module")
def database18(postgres18_server: str) -> Iterator[str]:
    with postgres.fresh_database(postgres18_server) as url:
        yield url


def transactions(dsn: str) -> Begin:
    @asynccontextmanager
    async def transaction() -> AsyncGenerator[asyncpg.Connection]:
        connection = await asyncpg.connect(dsn)
        try:
            async with connection.transaction():
                yield connection
        finally:
            await connection.close()

    return transaction


class TestPostgres(StoreContract):
    processes = True

    @pytest.fixture
    def make_store(self, database: str) -> MakeStore:
        return partial(PostgresStore, database, schema=f"test{next(_schemas)}")

    @pytest.fixture
    def begin(self, database: str) -> Begin:
        return transactions(database)


class TestPostgresPooled(StoreContract):
    """By way of PgBouncer, which may give each transaction another connection of the server."""

    @pytest.fixture
    def make_store(self, database: str, pgbouncer_server: str) -> MakeStore:
        pooled = urlsplit(database)._replace(netloc=urlsplit(pgbouncer_server).netloc).geturl()
        return partial(PostgresStore, pooled, schema=f"test{next(_schemas)}", pooled=True, listen_dsn=database)

    @pytest.fixture
    def begin(self, database: str) -> Begin:
        return transactions(database)


class TestPostgres18(StoreContract):
    processes = True

    @pytest.fixture
    def make_store(self, database18: str) -> MakeStore:
        return partial(PostgresStore, database18, schema=f"test{next(_schemas)}")

    @pytest.fixture
    def begin(self, database18: str) -> Begin:
        return transactions(database18)

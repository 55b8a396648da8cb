"""The MySQL store keeps every promise of the contract."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from urllib.parse import urlsplit

import asyncmy
import pytest

from fastqueue.stores.mysql import MySQLStore
from fastqueue.testing import Begin, MakeStore, StoreContract
from tests.servers import mysql

_prefixes = count(1)
"""Each test has tables of its own, which are made quicker than a database."""


@pytest.fixture(scope="module")
def database(mysql_server: str) -> Iterator[str]:
    with mysql.fresh_database(mysql_server) as url:
        yield url


class TestMySQL(StoreContract):
    processes = True

    @pytest.fixture
    def make_store(self, database: str) -> MakeStore:
        return partial(MySQLStore, database, prefix=f"test{next(_prefixes)}_")

    @pytest.fixture
    def begin(self, database: str) -> Begin:
        server = urlsplit(database)

        @asynccontextmanager
        async def transaction() -> AsyncGenerator[asyncmy.Connection]:
            async with asyncmy.connect(
                host=server.hostname,
                port=server.port or 3306,
                user=server.username,
                password=server.password or "",
                db=server.path.lstrip("/"),
            ) as connection:
                await connection.begin()
                try:
                    yield connection
                except BaseException:
                    await connection.rollback()
                    raise
                await connection.commit()

        return transaction

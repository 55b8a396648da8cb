"""The MySQL store keeps every promise of the contract."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count

import pytest

from fastqueue.testing import MakeStore, StoreContract
from tests.servers import mysql

MySQLStore = pytest.importorskip("fastqueue.stores.mysql").MySQLStore

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

"""The SQLite store keeps every promise of the contract."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

import pytest

from fastqueue.stores.sqlite import SQLiteStore
from fastqueue.testing import Begin, MakeStore, StoreContract


class TestSQLite(StoreContract):
    processes = True

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> MakeStore:
        return partial(SQLiteStore, tmp_path / "jobs.db")

    @pytest.fixture
    def begin(self, tmp_path: Path) -> Begin:
        @asynccontextmanager
        async def transaction() -> AsyncGenerator[sqlite3.Connection]:
            with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as connection, connection:
                connection.execute("BEGIN IMMEDIATE")
                yield connection

        return transaction

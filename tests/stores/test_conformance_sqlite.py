"""The SQLite store keeps every promise of the contract."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from fastqueue.stores.sqlite import SQLiteStore
from fastqueue.testing import StoreContract
from fastqueue.testing.conformance.stage import MakeStore


class TestSQLite(StoreContract):
    processes = True

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> MakeStore:
        return partial(SQLiteStore, tmp_path / "jobs.db")

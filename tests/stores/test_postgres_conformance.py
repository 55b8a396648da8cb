"""The PostgreSQL store keeps every promise of the contract, on two majors of the server."""

from __future__ import annotations

from functools import partial

import pytest

from fastqueue.stores.postgres import PostgresStore
from fastqueue.testing import StoreContract
from fastqueue.testing.conformance.stage import MakeStore


class TestPostgres(StoreContract):
    processes = True

    @pytest.fixture
    def make_store(self, postgres_url: str) -> MakeStore:
        return partial(PostgresStore, postgres_url)


class TestPostgres18(StoreContract):
    @pytest.fixture
    def make_store(self, postgres18_url: str) -> MakeStore:
        return partial(PostgresStore, postgres18_url)

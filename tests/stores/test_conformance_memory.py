"""The memory store keeps every promise of the contract."""

from __future__ import annotations

import pytest

from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import MakeStore, StoreContract


class TestMemory(StoreContract):
    @pytest.fixture
    def make_store(self) -> MakeStore:
        return MemoryStore().again

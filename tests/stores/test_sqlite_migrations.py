from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from fastqueue.errors import SchemaMissing, SchemaTooNew
from fastqueue.job import NewJob
from fastqueue.store import Migrates
from fastqueue.stores import _migrations
from fastqueue.stores._sql import Statements, Tables, run_sync
from fastqueue.stores.sqlite import SQLiteStore
from fastqueue.stores.sqlite._database import Database

TABLES = Tables()
KNOWN = _migrations.load("sqlite", TABLES)


def schema(path: Path) -> list[tuple[str, str]]:
    connection = sqlite3.connect(path)
    found = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
    ).fetchall()
    connection.close()
    return found


def migrates(store: SQLiteStore) -> Migrates:
    assert store.migrates is not None
    return store.migrates


async def opened(path: Path, *, migrate: bool = True) -> SQLiteStore:
    store = SQLiteStore(path, migrate=migrate)
    await store.open()
    return store


@pytest.mark.parametrize("number", range(len(KNOWN)))
async def test_tables_that_were_upgraded_equal_new_ones(tmp_path: Path, number: int) -> None:
    old = Database(str(tmp_path / "old.db"), Statements("sqlite", TABLES), "FULL")
    record = Statements("sqlite", TABLES)["meta.record"]
    run_sync(_migrations.apply(KNOWN[:number], record=record, now=0), old.execute)
    old.close()
    for name in ("old.db", "new.db"):
        await (await opened(tmp_path / name)).close()
    assert schema(tmp_path / "old.db") == schema(tmp_path / "new.db") != []


async def test_the_text_makes_the_same_tables_and_records_that_it_has(tmp_path: Path) -> None:
    text = migrates(SQLiteStore(tmp_path / "by_hand.db")).sql()
    connection = sqlite3.connect(tmp_path / "by_hand.db")
    connection.executescript(text)
    connection.close()
    store = await opened(tmp_path / "by_hand.db", migrate=False)
    assert await store.push([NewJob(kind="count", payload="{}", run_at=0)], now=0)
    assert await migrates(store).migrate() == []
    assert await store.identity()
    await store.close()
    await (await opened(tmp_path / "new.db")).close()
    assert schema(tmp_path / "by_hand.db") == schema(tmp_path / "new.db")


async def test_the_text_since_the_last_migration_is_empty(tmp_path: Path) -> None:
    faculty = migrates(SQLiteStore(tmp_path / "jobs.db"))
    assert faculty.sql(since=faculty.latest) == ""


async def test_tables_can_be_made_before_the_store_is_opened(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "jobs.db", migrate=False)
    assert await migrates(store).current() == 0
    assert await migrates(store).migrate() == [migration.number for migration in KNOWN]
    assert await migrates(store).current() == migrates(store).latest == KNOWN[-1].number
    await store.open()
    await store.close()


async def test_a_store_that_may_not_migrate_refuses_a_file_without_tables(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "jobs.db", migrate=False)
    with pytest.raises(SchemaMissing, match="run `fastqueue migrate`"):
        await store.open()
    await store.close()


@pytest.mark.parametrize("migrate", [True, False])
async def test_tables_of_a_newer_version_are_refused(tmp_path: Path, migrate: bool) -> None:
    store = await opened(tmp_path / "jobs.db")
    await store._access.write(lambda database: database.do("meta.record", number=99, name="x", applied_at=0).rowcount)
    await store.close()
    with pytest.raises(SchemaTooNew, match="are at migration 99"):
        await opened(tmp_path / "jobs.db", migrate=migrate)


async def test_several_that_open_a_new_file_at_once_make_its_tables_once(tmp_path: Path) -> None:
    stores = await asyncio.gather(*(opened(tmp_path / "jobs.db") for _ in range(8)))
    assert len({await store.identity() for store in stores}) == 1
    applied = await stores[0]._access.read(
        lambda database: database._connection.execute("SELECT number FROM fastqueue_migrations").fetchall()
    )
    assert applied == [(migration.number,) for migration in KNOWN]
    for store in stores:
        await store.close()


async def test_the_identity_is_one_file_s_and_stays(tmp_path: Path) -> None:
    seen: list[str] = []
    for name in ("one.db", "one.db", "two.db"):
        store = await opened(tmp_path / name)
        seen.append(await store.identity())
        await store.close()
    assert seen[0] == seen[1] != seen[2]
    assert len(seen[0]) == 32

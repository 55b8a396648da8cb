"""What is wrong with the file reaches the caller as one error, with the path and the remedy."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from fastqueue.errors import MissingDriver, StoreUnavailable
from fastqueue.job import NewJob
from fastqueue.stores.sqlite import SQLiteStore, _database

NEW = NewJob(kind="count", payload="{}", run_at=0)


async def refused(store: SQLiteStore) -> str:
    with pytest.raises(StoreUnavailable) as caught:
        await store.open()
    assert isinstance(caught.value.__cause__, sqlite3.Error)
    assert store.path in str(caught.value)
    return str(caught.value)


async def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert "its folder must exist" in await refused(SQLiteStore(tmp_path / "missing" / "jobs.db"))


async def test_a_path_that_is_a_folder(tmp_path: Path) -> None:
    assert "unable to open database file" in await refused(SQLiteStore(tmp_path))


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Buy milk, and bread, and twelve eggs. " * 30)
    assert "the file is something else, or encrypted" in await refused(SQLiteStore(path))
    assert path.read_text().startswith("Buy milk")


async def test_a_file_that_cannot_be_opened_at_first_can_be_later(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "later" / "jobs.db")
    await refused(store)
    (tmp_path / "later").mkdir()
    await store.open()
    assert await store.push([NEW], now=0)
    await store.close()


async def test_a_file_that_must_not_be_written(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "jobs.db")
    await store.open()
    await store._access.read(lambda database: database._connection.execute("PRAGMA query_only = ON").close())
    with pytest.raises(StoreUnavailable, match="must be allowed to write the file and its folder"):
        await store.push([NEW], now=0)
    assert await store.jobs(now=0) == []
    await store.close()


async def test_a_file_that_stays_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_database, "PATIENCE", 0.02)
    store = SQLiteStore(tmp_path / "jobs.db")
    await store.open()
    app = sqlite3.connect(store.path, isolation_level=None)
    app.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match=r"another connection kept it locked for .* BEGIN IMMEDIATE"):
        await store.push([NEW], now=0)
    app.execute("ROLLBACK")
    assert await store.push([NEW], now=0)
    app.close()
    await store.close()


async def test_a_python_with_an_old_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 26, 0))
    with pytest.raises(MissingDriver, match=r"needs SQLite 3\.38 or newer, .* use another build of Python"):
        await SQLiteStore(tmp_path / "jobs.db").open()


async def test_an_error_of_the_program_stays_what_it_is(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "jobs.db")
    await store.open()
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        await store._access.read(lambda database: database._connection.execute("SELECT * FROM missing"))
    with pytest.raises(OverflowError):
        await store.push([NewJob(kind="count", payload="{}", run_at=2**63)], now=0)
    await store.close()

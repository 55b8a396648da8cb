from __future__ import annotations

import asyncio

import pytest

from fastqueue.errors import SchemaMissing, SchemaTooNew, StoreUnavailable
from fastqueue.stores import _migrations
from fastqueue.stores._sql import Tables
from fastqueue.stores.mysql import MySQLStore
from tests.stores.jobs import NOW, claimed, job, there
from tests.stores.mysql_rows import connected, opened

KNOWN = _migrations.load("mysql", Tables(quote="`"))
STATEMENTS = [text for migration in KNOWN for text in migration.statements]


def schema(url: str) -> dict[str, str]:
    """Each table as the server would make it again, and how many rows it begins with."""
    with connected(url) as cursor:
        cursor.execute("SHOW TABLES")
        found: dict[str, str] = {}
        for (table,) in cursor.fetchall():
            cursor.execute(f"SHOW CREATE TABLE `{table}`")
            (_, text), *_ = cursor.fetchall()
            cursor.execute(f"SELECT COUNT(*) FROM `{table}`")
            found[table] = f"{text} {cursor.fetchall()}"
            cursor.execute(f"DROP TABLE `{table}`")
        return found


@pytest.mark.parametrize("number", range(len(KNOWN)))
async def test_tables_that_were_upgraded_equal_new_ones(mysql_url: str, number: int) -> None:
    with connected(mysql_url) as cursor:
        for migration in KNOWN[:number]:
            for text in migration.statements:
                cursor.execute(text)
            cursor.execute(f"INSERT INTO fastqueue_migrations VALUES ({migration.number}, '{migration.name}', 0)")
    async with opened(mysql_url):
        pass
    upgraded = schema(mysql_url)
    async with opened(mysql_url):
        pass
    assert upgraded == schema(mysql_url) != {}


@pytest.mark.parametrize("done", range(len(STATEMENTS) + 1))
async def test_a_migration_that_was_broken_off_is_taken_up_again(mysql_url: str, done: int) -> None:
    with connected(mysql_url) as cursor:
        for text in STATEMENTS[:done]:
            cursor.execute(text)
    async with opened(mysql_url) as store:
        await store.push([job(unique_key="a")], now=NOW)
        assert len(await claimed(store)) == 1
        with connected(mysql_url) as cursor:
            cursor.execute("DELETE FROM fastqueue_jobs")
            cursor.execute("DELETE FROM fastqueue_lanes")
            cursor.execute("DELETE FROM fastqueue_held_kinds")
            cursor.execute("ALTER TABLE fastqueue_jobs AUTO_INCREMENT = 1")
    broken_off = schema(mysql_url)
    async with opened(mysql_url):
        pass
    assert broken_off == schema(mysql_url)


async def test_text_is_kept_in_every_letter_and_compared_byte_for_byte(mysql_url: str) -> None:
    async with opened(mysql_url):
        with connected(mysql_url) as cursor:
            cursor.execute(
                "SELECT DISTINCT collation_name FROM information_schema.columns "
                "WHERE table_schema = DATABASE() AND collation_name IS NOT NULL"
            )
            ((collation,),) = cursor.fetchall()
    assert collation in ("utf8mb4_nopad_bin", "utf8mb4_0900_bin")


async def test_the_text_makes_the_same_tables_and_records_that_it_has(mysql_url: str) -> None:
    text = there(MySQLStore(mysql_url).migrates).sql()
    with connected(mysql_url) as cursor:
        for statement in text.split(";\n"):
            if statement.strip():
                cursor.execute(statement)
    async with opened(mysql_url, migrate=False) as store:
        assert await there(store.migrates).migrate() == []
        assert await store.identity()
    by_hand = schema(mysql_url)
    async with opened(mysql_url):
        pass
    assert by_hand == schema(mysql_url)


def test_the_text_since_the_last_migration_is_empty() -> None:
    faculty = there(MySQLStore("mysql://db/app").migrates)
    assert faculty.sql(since=faculty.latest) == ""


async def test_tables_can_be_made_before_the_store_is_opened(mysql_url: str) -> None:
    store = MySQLStore(mysql_url, migrate=False)
    faculty = there(store.migrates)
    assert await faculty.current() == 0
    assert await faculty.migrate() == [migration.number for migration in KNOWN]
    assert await faculty.current() == faculty.latest == KNOWN[-1].number
    await store.open()
    await store.close()


async def test_a_store_that_may_not_migrate_refuses_a_database_without_tables(mysql_url: str) -> None:
    with pytest.raises(SchemaMissing, match="run `fastqueue migrate`"):
        await MySQLStore(mysql_url, migrate=False).open()


@pytest.mark.parametrize("migrate", [True, False])
async def test_tables_of_a_newer_version_are_refused(mysql_url: str, migrate: bool) -> None:
    async with opened(mysql_url):
        with connected(mysql_url) as cursor:
            cursor.execute("INSERT INTO fastqueue_migrations VALUES (99, 'x', 0)")
    with pytest.raises(SchemaTooNew, match="are at migration 99"):
        await MySQLStore(mysql_url, migrate=migrate).open()


async def test_several_that_open_a_new_database_at_once_make_its_tables_once(mysql_url: str) -> None:
    stores = [MySQLStore(mysql_url) for _ in range(8)]
    await asyncio.gather(*(store.open() for store in stores))
    assert len({await store.identity() for store in stores}) == 1
    with connected(mysql_url) as cursor:
        cursor.execute("SELECT number FROM fastqueue_migrations")
        assert cursor.fetchall() == tuple((migration.number,) for migration in KNOWN)
    await asyncio.gather(*(store.close() for store in stores))


async def test_an_instance_that_never_ends_its_migration_is_waited_for_only_so_long(
    mysql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastqueue.stores.mysql._migrates.WAITS", 1)
    with connected(mysql_url) as other:
        other.execute("SELECT GET_LOCK(CONCAT('fastqueue.', MD5(CONCAT(DATABASE(), '.fastqueue_migrations'))), 0)")
        with pytest.raises(StoreUnavailable, match=r"migrating the tables fastqueue_\* for 1 s; wait for it"):
            await MySQLStore(mysql_url).open()
        async with opened(mysql_url, prefix="other_"):
            pass
    async with opened(mysql_url):
        pass


async def test_the_identity_is_one_set_of_tables_and_stays(mysql_url: str) -> None:
    seen: list[str] = []
    for prefix in ("one_", "one_", "two_"):
        async with opened(mysql_url, prefix=prefix) as store:
            seen.append(await store.identity())
    assert seen[0] == seen[1] != seen[2]
    assert len(seen[0]) == 32

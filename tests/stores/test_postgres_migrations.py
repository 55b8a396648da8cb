"""The PostgreSQL store's tables: made once, by whoever comes first, under names of the app's choice."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from fastqueue.errors import SchemaMissing, SchemaTooNew, SchemaTooOld, StoreUnavailable
from fastqueue.stores import _migrations
from fastqueue.stores._sql import Statements, Tables, run
from fastqueue.stores.postgres import PostgresStore
from fastqueue.stores.postgres._connections import executor
from tests.stores.jobs import NOW, claimed, job, there
from tests.stores.postgres_rows import connected, opened

KNOWN = _migrations.load("postgres", Tables())

CATALOGUE = """
    SELECT c.relname::text, c.relkind::text, coalesce(pg_get_indexdef(c.oid), ''), coalesce(c.reloptions::text, ''),
        array(SELECT format('%s %s %s %s', a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity)
            FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attname)
    FROM pg_class c WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'i', 'S')
    UNION ALL
    SELECT p.proname::text, 'function', pg_get_functiondef(p.oid), '', '{}'
    FROM pg_proc p WHERE p.pronamespace = $1::regnamespace
    ORDER BY 1
"""


async def catalogue(url: str, schema: str = "public") -> list[Any]:
    async with connected(url) as connection:
        return [tuple(row) for row in await connection.fetch(CATALOGUE, schema)]


@pytest.mark.parametrize("number", range(len(KNOWN)))
async def test_tables_that_were_upgraded_equal_new_ones(postgres_url: str, number: int) -> None:
    record = Statements("postgres", Tables())["meta.record"]
    async with opened(postgres_url):
        new = await catalogue(postgres_url)
    async with connected(postgres_url) as connection:
        await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        await run(_migrations.apply(KNOWN[:number], record=record, now=NOW), executor(connection))
    async with opened(postgres_url):
        assert await catalogue(postgres_url) == new != []


async def test_instances_that_start_at_once_migrate_once(postgres_url: str) -> None:
    stores = [PostgresStore(postgres_url, schema="jobs") for _ in range(6)]
    await asyncio.gather(*(store.open() for store in stores))
    assert len({await store.identity() for store in stores}) == 1
    async with connected(postgres_url) as connection:
        assert len(await connection.fetch("SELECT * FROM jobs.fastqueue_migrations")) == len(KNOWN)
    for store in stores:
        await store.close()


async def test_the_text_makes_the_same_tables_and_records_that_it_has(postgres_url: str) -> None:
    async with opened(postgres_url, schema="by_store") as store:
        text = there(store.migrates).sql().replace("by_store", "by_hand")
        assert there(store.migrates).sql(since=there(store.migrates).latest) == ""
    async with connected(postgres_url) as connection:
        await connection.execute(text)
    made = [repr(row).replace("by_store", "by_hand") for row in await catalogue(postgres_url, "by_store")]
    assert [repr(row) for row in await catalogue(postgres_url, "by_hand")] == made
    async with opened(postgres_url, schema="by_hand", migrate=False) as store:
        assert await there(store.migrates).migrate() == []
        assert await store.push([job()], now=NOW)


async def test_tables_are_not_made_unasked(postgres_url: str) -> None:
    store = PostgresStore(postgres_url, migrate=False)
    with pytest.raises(SchemaMissing, match="fastqueue migrate"):
        await store.open()
    assert await there(store.migrates).current() == 0
    assert await there(store.migrates).migrate() == [migration.number for migration in KNOWN]
    await store.open()
    assert await there(store.migrates).current() == there(store.migrates).latest
    await store.close()


async def test_tables_of_another_version_are_refused_with_the_remedy(postgres_url: str) -> None:
    async with opened(postgres_url), connected(postgres_url) as connection:
        await connection.execute(f"INSERT INTO fastqueue_migrations VALUES ({len(KNOWN) + 1}, 'later', 0)")
        for migrate in (True, False):
            with pytest.raises(SchemaTooNew, match="install the newer version"):
                await PostgresStore(postgres_url, migrate=migrate).open()
        await connection.execute("DELETE FROM fastqueue_migrations WHERE number > 0")
        await connection.execute("INSERT INTO fastqueue_migrations VALUES (0, 'before', 0)")
        with pytest.raises((SchemaMissing, SchemaTooOld), match="fastqueue migrate"):
            await PostgresStore(postgres_url, migrate=False).open()


@pytest.mark.parametrize(("schema", "prefix"), [("Jobs", "q_"), ("select", "From"), ("s" * 40, "p" * 40)])
async def test_two_sets_of_tables_with_names_of_any_case_and_length_keep_apart(
    postgres_url: str, schema: str, prefix: str
) -> None:
    async with opened(postgres_url) as plain, opened(postgres_url, schema=schema, prefix=prefix) as named:
        assert await plain.identity() != await named.identity()
        await named.push([job(1, at_once=1), job(2, unique_key="a"), job(3)], now=NOW)
        assert await claimed(plain) == []
        jobs = await claimed(named)
        assert len(jobs) == 3
        assert await named.give_back(jobs) == [True] * 3
        assert await there(named.holds).hold_back(jobs[0], until=NOW + 1) is False


async def test_an_identity_is_made_once_for_each_set_of_tables(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        first = await store.identity()
        await store.close()
        await store.open()
        assert await store.identity() == first
        assert len(first) == 32


async def test_a_role_that_may_not_make_schemas_can_use_one_that_is_there(postgres_url: str) -> None:
    async with connected(postgres_url) as admin:
        role = f"app_{await admin.fetchval('SELECT txid_current()')}_{admin.get_server_pid()}"
        await admin.execute(f"CREATE ROLE {role} LOGIN; CREATE SCHEMA theirs AUTHORIZATION {role}")
        try:
            url = postgres_url.replace("//postgres@", f"//{role}@")
            async with opened(url, schema="theirs") as store:
                await store.push([job()], now=NOW)
                assert len(await claimed(store)) == 1
            with pytest.raises((asyncpg.InsufficientPrivilegeError, StoreUnavailable)):
                await PostgresStore(url, schema="new").open()
        finally:
            await admin.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")

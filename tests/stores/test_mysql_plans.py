"""Each statement uses the index it says it relies on, and a claim reads nothing that it may not take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pymysql.cursors import Cursor

from fastqueue.outcome import Settlement
from fastqueue.stores._rows import NEVER
from fastqueue.stores._sql import Statement, Tables
from fastqueue.stores.mysql import MySQLStore
from fastqueue.stores.mysql._repeats import MySQLStatements
from tests.servers import mysql
from tests.stores.jobs import NOW, claimed, job
from tests.stores.mysql_rows import STATES, connected, opened, rows_read, seed

STATEMENTS = [statement for statement in MySQLStatements(Tables(quote="`")) if statement.relies_on is not None]
ROW: dict[str, Any] = {
    **dict.fromkeys(("kind", "state", "queue", "unique_key", "error", "value"), "mail0"),
    "name": "1",
    "part": "",
    **dict.fromkeys(
        ("now", "until", "at", "before", "run_at", "due", "after_due", "after_at", "failed_at"), NOW - 500_000
    ),
    **dict.fromkeys(("id", "token", "after", "after_id", "attempts", "interruptions", "window_ms"), 1),
    **dict.fromkeys(("since", "first"), 1),
    "last": 3,
    **dict.fromkeys(("limit", "portion"), 10),
    **dict.fromkeys(("lane", "mode"), 0),
    "everywhere": False,
    "busy": [None, "a", "b"],
}
VALUES: dict[str, Any] = {
    **ROW,
    "rows": [ROW, ROW | {"id": 2}],
    "ids": list(range(1, 101)),
    "gone": str(list(range(1, 101))),
    "slots": [1, 2, 3],
    "keys": [("mail0", "a"), ("mail0", "b"), ("mail1", "a")],
    "kinds": ["mail0", "mail1"],
    "names": ["1", "2"],
    "queues": ["default"],
}


@pytest.fixture(scope="module", params=["small tables", "large tables", "large tables, counted"])
def filled(request: pytest.FixtureRequest, mysql_server: str) -> Iterator[Cursor]:
    with mysql.fresh_database(mysql_server) as url, connected(url) as cursor:
        for statement in MySQLStore(url).migrates.sql().split(";\n"):  # type: ignore[union-attr]
            if statement.strip():
                cursor.execute(statement)
        for kind in range(3):
            for state in STATES:
                seed(cursor, 4 if request.param == "small tables" else 2_000, f"mail{kind}", state)
        for table, columns in (("schedules", "slot, slot"), ("throttles", f"slot, slot, {NEVER}")):
            cursor.execute(f"INSERT INTO fastqueue_{table} SELECT {columns} FROM fastqueue_slots WHERE slot < 99")
        cursor.execute("INSERT INTO fastqueue_meta (name, value) VALUES ('1', 'a line')")
        if request.param == "large tables, counted":
            cursor.execute("ANALYZE TABLE fastqueue_jobs, fastqueue_lanes, fastqueue_held_kinds")
        yield cursor


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)
def test_a_statement_uses_the_index_it_relies_on(filled: Cursor, statement: Statement) -> None:
    text, values = statement.bind("format", VALUES)
    if text.startswith("INSERT"):
        return  # it has no plan: the key it meets is found in the primary key
    filled.execute(f"EXPLAIN {text}", values)
    columns = [column[0] for column in filled.description]
    steps = [dict(zip(columns, row, strict=True)) for row in filled.fetchall()]
    wanted = "PRIMARY" if statement.relies_on == "primary key" else f"fastqueue_{statement.relies_on}"
    assert [step for step in steps if step["key"] == wanted or "optimized away" in str(step["Extra"])], steps
    jobs = [step for step in steps if step["table"] in ("j", "fastqueue_jobs")]
    assert not [step for step in jobs if step["type"] in ("ALL", "index") and "ORDER BY" not in text], steps
    assert not [step for step in jobs if "filesort" in str(step["Extra"])], steps


async def reads(store: MySQLStore, limit: int, *kinds: str) -> int:
    """What a claim reads."""
    pool = store._access.here.claims
    before = await rows_read(pool)
    await claimed(store, limit, kinds=kinds)
    return await rows_read(pool) - before


AHEAD = ["nothing", "an unknown kind", "a kind that is held back", "a kind at its limit", "delayed jobs", "failed jobs"]


def put_ahead(cursor: Cursor, what: str) -> None:
    rows = 20_000
    match what:
        case "an unknown kind":
            seed(cursor, rows, "unknown")
        case "a kind that is held back":
            seed(cursor, rows, "back")
            cursor.execute(f"UPDATE fastqueue_held_kinds SET held_until = {NOW + 1} WHERE kind = 'back'")
        case "a kind at its limit":
            seed(cursor, 2, "full", "held")
            seed(cursor, rows, "full", mode=4)
        case "delayed jobs" | "failed jobs":
            seed(cursor, rows, "mail", what.split()[0])
        case _:
            pass


async def test_what_stands_in_front_of_the_line_costs_a_claim_nothing(mysql_url: str) -> None:
    cost: dict[str, int] = {}
    async with opened(mysql_url) as store:
        for what in AHEAD:
            with connected(mysql_url) as cursor:
                for table in ("jobs", "lanes", "held_kinds"):
                    cursor.execute(f"TRUNCATE fastqueue_{table}")
                put_ahead(cursor, what)
                seed(cursor, 200, "mail")
            cost[what] = await reads(store, 100, "mail", "full", "back")
    assert {what: taken for what, taken in cost.items() if taken > 3 * cost["nothing"]} == {}


async def test_a_claim_beside_a_full_kind_reads_the_same_whether_ten_of_it_wait_or_a_hundred_thousand(
    mysql_url: str,
) -> None:
    async with opened(mysql_url) as store:
        for kind in ("few", "many"):
            with connected(mysql_url) as cursor:
                seed(cursor, 2, kind, "held", mode=4)
                seed(cursor, 10 if kind == "few" else 100_000, kind, mode=4)
                seed(cursor, 20, f"beside {kind}")
        few = await reads(store, 20, "few", "beside few")
        assert 0 < await reads(store, 20, "many", "beside many") <= few
        assert await claimed(store, 20, kinds=("few", "many")) == []


async def test_a_claim_that_finds_nothing_reads_a_few_entries_a_lane(mysql_url: str) -> None:
    kinds = [f"mail{n}" for n in range(10)]
    async with opened(mysql_url) as store:
        with connected(mysql_url) as cursor:
            for kind in kinds:
                for state in ("delayed", "failed", "held"):
                    seed(cursor, 500, kind, state)
        assert await reads(store, 100, *kinds) < 12 * len(kinds)


async def test_a_claim_with_limits_counts_and_excludes_by_the_held_jobs_alone(mysql_url: str) -> None:
    async with opened(mysql_url) as store:
        await store.push([job(n, at_once=3, alone_key=str(n)) for n in range(3)], now=NOW)
        await claimed(store, 1)
        alone = await reads(store, 1, "mail")
        with connected(mysql_url) as cursor:
            seed(cursor, 2_000, "mail", "failed", mode=7, key="CONCAT('w', n)")
            seed(cursor, 2_000, "other", "held", mode=7, key="CONCAT('r', n)")
        assert await reads(store, 1, "mail") < alone + 20


async def test_a_settlement_reads_its_own_jobs_alone(mysql_url: str) -> None:
    async with opened(mysql_url) as store:
        await store.push([job(n) for n in range(10)], now=NOW)
        jobs = await claimed(store)
        with connected(mysql_url) as cursor:
            seed(cursor, 5_000, "mail", "held")
        pool = store._access.here.ends
        before = await rows_read(pool)
        await store.settle([Settlement.retry(each, at=NOW, error="no") for each in jobs[:5]])
        await store.settle([Settlement.done(each) for each in jobs[5:]])
        assert await rows_read(pool) - before < 60

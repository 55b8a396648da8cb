"""Each statement uses the index it says it relies on, and a claim reads nothing that it may not take."""

from __future__ import annotations

from typing import Any

import pytest

from fastqueue.stores._sql import Call, Statement, Statements, Tables
from fastqueue.stores.postgres import PostgresStore
from tests.stores.jobs import NOW, claimed, job
from tests.stores.postgres_rows import STATES, blocks, connected, nodes, opened, plans, seed

STATEMENTS = [statement for statement in Statements("postgres", Tables()) if statement.relies_on is not None]
VALUES: dict[str, Any] = {
    **dict.fromkeys(("name", "kind", "state", "queue", "payload", "unique_key", "value"), "a"),
    **dict.fromkeys(("options", "alone_key", "carried", "schedule", "error", "channel", "tag"), None),
    **dict.fromkeys(("now", "until", "at", "since", "before", "after_at", "run_at", "created_at"), NOW),
    **dict.fromkeys(("id", "token", "mode", "after", "after_id", "first", "last", "window_ms", "hold_ms"), 1),
    **dict.fromkeys(("limit", "portion"), 10),
    **dict.fromkeys(("ids", "tokens", "gone_ids", "gone_tokens", "attempts", "interruptions"), (1, 2)),
    **dict.fromkeys(("dues", "failed_ats"), (NOW, None)),
    **dict.fromkeys(("lane_places", "lane_queues", "lane_kinds", "lane_modes", "lane_marks"), None),
    **dict.fromkeys(("queues", "kinds", "errors", "unique_keys"), ("default", "mail0")),
}
OF_MANY = {name: [VALUES[name]] for name in ("queue", "kind", "mode", "run_at", "hold_ms", "payload", "unique_key")} | {
    "options": [],
    "alone_key": [],
    "carried": [],
    "schedule": [],
    "latest": [True],
    "jobs": 1,
}


MANY = 1_000
"""Rows that no statement reads without looking them up."""


def values(statement: Statement) -> dict[str, Any]:
    places = statement.render("numeric")[1]
    known = VALUES | OF_MANY if statement.name == "push.keyed" else VALUES
    return {place: known[place] for place in places}


async def fill(url: str) -> None:
    async with connected(url) as connection:
        for kind in range(3):
            for state in STATES:
                await seed(connection, 1_500, f"mail{kind}", state, mode=kind * 2, key="NULL")
        for table, columns in (("schedules", "n, n"), ("held_kinds", "n, n"), ("throttles", "n, n, n")):
            await connection.execute(f"INSERT INTO fastqueue_{table} SELECT {columns} FROM generate_series(1, 99) n")


def used(plan: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    for node in nodes(plan):
        found |= {node.get("Index Name", ""), *node.get("Conflict Arbiter Indexes", [])}
    return found


def dear(plan: dict[str, Any]) -> list[str]:
    return [
        f"{node['Node Type']} on {node.get('Relation Name')}"
        for node in nodes(plan)
        if node["Node Type"] == "Bitmap Heap Scan"
        or (node["Node Type"] == "Seq Scan" and node["Relation Name"].startswith("fastqueue_"))
        or (node["Node Type"] == "Index Scan" and "Index Cond" not in node and read_by(node) > MANY)
    ]


def read_by(node: dict[str, Any]) -> float:
    """How many rows a step read."""
    return float(node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)))


@pytest.mark.parametrize("when", ["on new tables", "on tables vacuumed while empty", "on full ones"])
async def test_a_statement_uses_the_index_it_relies_on_when_it_was_planned(postgres_url: str, when: str) -> None:
    calls = [Call(statement, values(statement)) for statement in STATEMENTS]
    wrong: dict[str, object] = {}
    async with opened(postgres_url) as store, connected(postgres_url) as connection:
        pool = store._access.here.claims
        if when == "on tables vacuumed while empty":
            await connection.execute("VACUUM fastqueue_jobs, fastqueue_held_kinds")
            await seed(connection, 5, "mail0", "waiting")
        for call in calls if when != "on full ones" else []:
            await pool.run(call)
        await fill(postgres_url)
        for call in calls:
            async with plans(pool) as found:
                await pool.run(call)
            indexes = set().union(*map(used, found))
            steps = [step for plan in found for step in dear(plan)]
            if steps or f"fastqueue_{call.statement.relies_on}" not in indexes:
                wrong[call.statement.name] = (indexes, steps)
    assert wrong == {}


async def test_a_claim_with_limits_counts_and_excludes_by_the_running_jobs_alone(postgres_url: str) -> None:
    async with opened(postgres_url) as store, connected(postgres_url) as connection:
        await store.push([job(n, at_once=3, alone_key=str(n)) for n in range(3)], now=NOW)
        await claimed(store, 1)
        await seed(connection, 2_000, "mail", mode=7, key="'w' || n")
        await seed(connection, 2_000, "other", "held", mode=7, key="'r' || n")
        async with plans(store._access.here.claims) as found:
            await claimed(store, 1, now=NOW + 1)
    assert [step for plan in found for step in dear(plan)] == []
    of_running = {
        node["Index Name"]: node["Actual Rows"] * node["Actual Loops"]
        for plan in found
        for node in nodes(plan)
        if node.get("Index Name") in ("fastqueue_jobs_held", "fastqueue_jobs_lost")
    }
    assert of_running.keys() == {"fastqueue_jobs_held", "fastqueue_jobs_lost"}
    assert max(of_running.values()) <= 3


async def claim_blocks(store: PostgresStore, *kinds: str, limit: int = 100) -> int:
    async with plans(store._access.here.claims) as found:
        await claimed(store, limit, kinds=kinds)
    return blocks(found[-1])


async def head_of_line(store: PostgresStore, url: str, shape: str) -> None:
    async with connected(url) as connection:
        match shape:
            case "an unknown kind":
                await seed(connection, 20_000, "unknown")
            case "a kind that is held back":
                await seed(connection, 20_000, "held")
                await connection.execute(f"INSERT INTO fastqueue_held_kinds VALUES ('held', {NOW + 1})")
            case "a kind at its limit":
                await seed(connection, 2, "full", "held")
                await seed(connection, 20_000, "full", mode=4)
            case "delayed jobs" | "failed jobs":
                await seed(connection, 20_000, "mail", shape.split()[0])
            case _:
                pass


async def test_what_stands_in_front_of_the_line_costs_a_claim_nothing(postgres_url: str) -> None:
    cost: dict[str, int] = {}
    for shape in (
        "nothing",
        "an unknown kind",
        "a kind that is held back",
        "a kind at its limit",
        "delayed jobs",
        "failed jobs",
    ):
        async with opened(postgres_url) as store, connected(postgres_url) as connection:
            await connection.execute("TRUNCATE fastqueue_jobs, fastqueue_held_kinds")
            await head_of_line(store, postgres_url, shape)
            await seed(connection, 200, "mail")
            await claim_blocks(store, "mail", "full", "held")
            cost[shape] = await claim_blocks(store, "mail", "full", "held")
    assert {shape: taken for shape, taken in cost.items() if taken > 2 * cost["nothing"]} == {}


async def test_a_claim_beside_a_full_kind_reads_the_same_whether_ten_of_it_wait_or_a_hundred_thousand(
    postgres_url: str,
) -> None:
    async with opened(postgres_url) as store, connected(postgres_url) as connection:
        for kind in ("few", "many"):
            await seed(connection, 2, kind, "held", mode=4)
            await seed(connection, 10 if kind == "few" else 100_000, kind, mode=4)
            await seed(connection, 20, f"beside {kind}")
            await seed(connection, 20, f"warm {kind}")
        costs: dict[str, int] = {}
        for kind in ("few", "many"):
            await claim_blocks(store, kind, f"warm {kind}", limit=20)
            costs[kind] = await claim_blocks(store, kind, f"beside {kind}", limit=20)
        # Both are in one index, so that it is as deep for either.
        assert 0 < costs["many"] <= 1.5 * costs["few"]
        assert await claimed(store, 20, kinds=("few", "many")) == []


async def test_a_claim_that_finds_nothing_looks_at_a_few_blocks_a_kind(postgres_url: str) -> None:
    kinds = [f"mail{n}" for n in range(10)]
    async with opened(postgres_url) as store, connected(postgres_url) as connection:
        for kind in kinds:
            await seed(connection, 500, kind, "delayed")
        await claim_blocks(store, *kinds)
        assert await claim_blocks(store, *kinds) <= 10 * len(kinds)

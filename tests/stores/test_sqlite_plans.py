"""Each statement uses the index it says it relies on, and a claim reads nothing that it may not take."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from fastqueue.stores._migrations import load
from fastqueue.stores._rows import NEVER
from fastqueue.stores._sql import Statement, Statements, Tables
from fastqueue.stores.sqlite._claim import Request
from fastqueue.stores.sqlite._database import Database

TABLES = Tables()
STATEMENTS = list(Statements("sqlite", TABLES))
NOW = 1_000_000
DEAR = re.compile(r"SCAN (fastqueue_\w+|j)\b(?!.*COVERING INDEX)|TEMP B-TREE")
STATES = {
    "waiting": f"n, n, {NEVER}, NULL",
    "delayed": f"{NOW} + n, {NOW} + n, {NEVER}, NULL",
    "held": f"n, {NEVER}, {NOW} + 60000, NULL",
    "failed": f"n, {NEVER}, {NEVER}, n",
}
"""Each state's run_at, due, held_until and failed_at."""


def insert(rows: int, *, kind: str, mode: int = 0, state: str = "waiting") -> str:
    """Jobs of seven kinds in three queues."""
    return f"""
        WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {rows})
        INSERT INTO fastqueue_jobs
            (queue, kind, mode, hold_ms, payload, created_at, run_at, due, held_until, failed_at)
        SELECT 'q' || (n % 3), '{kind}' || (n % 7), {mode}, 60000, '{{}}', 0, {STATES[state]} FROM numbers;
    """


def database(path: Path) -> Database:
    made = Database(str(path), Statements("sqlite", TABLES), "NORMAL")
    for migration in load("sqlite", TABLES):
        for text in migration.statements:
            made._connection.execute(text)
    return made


@pytest.fixture(scope="module", params=["without statistics", "with statistics"])
def seeded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> sqlite3.Connection:
    made = database(tmp_path_factory.mktemp("plans") / "jobs.db")._connection
    parts = [insert(2_500, kind=kind, state=kind) for kind in STATES]
    made.executescript("BEGIN;" + "".join(parts) + "COMMIT;")
    assert made.execute("SELECT count(*) FROM fastqueue_jobs").fetchone() == (10_000,)
    if request.param == "with statistics":
        made.execute("ANALYZE")
    return made


def plan(connection: sqlite3.Connection, statement: Statement) -> list[str]:
    lists = {"queues", "kinds", "ids"}
    values = {name: "[]" if name in lists else 1 for name in statement.render("qmark")[1]}
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement.text}", values)]


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)
def test_a_statement_uses_the_index_it_relies_on(seeded: sqlite3.Connection, statement: Statement) -> None:
    steps = plan(seeded, statement)
    # An insert has no plan; SQLite refuses one whose ON CONFLICT has no index to go by.
    if statement.relies_on is not None and not statement.text.startswith("INSERT"):
        wanted = "PRIMARY KEY" if statement.relies_on == "primary key" else f" INDEX fastqueue_{statement.relies_on}"
        assert any(wanted in step or "SEARCH fastqueue_migrations" in step for step in steps), steps
        assert not [step for step in steps if DEAR.search(step)]


def work(made: Database, function: Callable[[Database], object]) -> int:
    """How many instructions of SQLite's machine a function takes: the same on every machine."""
    taken = count()
    made._connection.set_progress_handler(lambda: next(taken) * 0, 1)
    function(made)
    made._connection.set_progress_handler(None, 1)
    return next(taken)


def claim(made: Database) -> int:
    request = Request(NOW, token=1, limit=20, queues=None, kinds=[f"mine{n}" for n in range(7)])

    def take(made: Database) -> None:
        made.begin()
        assert len(request.take(made).jobs) == 20
        made.roll_back()

    return work(made, take)


AHEAD = {
    "more of the same": insert(5_000, kind="mine"),
    "delayed": insert(5_000, kind="mine", state="delayed"),
    "failed": insert(5_000, kind="mine", state="failed"),
    "unknown": insert(5_000, kind="unknown"),
    "held back": insert(5_000, kind="back") + f"INSERT INTO fastqueue_held_kinds SELECT 'back' || n, {NEVER} FROM "
    "(SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6);",
    "full": insert(7, kind="mine", mode=2, state="held") + insert(5_000, kind="mine", mode=2),
}


@pytest.mark.parametrize("ahead", AHEAD)
def test_a_claim_costs_the_same_whatever_stands_beside_what_it_takes(tmp_path: Path, ahead: str) -> None:
    made = database(tmp_path / "jobs.db")
    made._connection.executescript(insert(100, kind="mine"))
    alone = claim(made)
    made._connection.executescript("BEGIN;" + AHEAD[ahead] + "COMMIT;")
    assert claim(made) < 3 * alone
    made.close()


def test_a_claim_beside_a_full_kind_costs_the_same_whether_seventy_of_it_wait_or_a_hundred_thousand(
    tmp_path: Path,
) -> None:
    costs: list[int] = []
    for waiting in (70, 100_000):
        made = database(tmp_path / f"{waiting}.db")
        full = insert(7, kind="mine", mode=2, state="held") + insert(waiting, kind="mine", mode=2)
        made._connection.executescript("BEGIN;" + full + insert(140, kind="mine") + "COMMIT;")
        costs.append(claim(made))
        made.close()
    assert costs[1] <= 1.01 * costs[0]


def test_a_look_that_finds_nothing_costs_the_same_whatever_is_there(tmp_path: Path) -> None:
    made = database(tmp_path / "jobs.db")

    def look(made: Database) -> None:
        request = Request(NOW, token=1, limit=20, queues=["q1"], kinds=["delayed1", "held1", "failed1"])
        assert request.look(made) is not None

    costs: list[int] = []
    for rows in (50, 5_000):
        for kind in ("delayed", "held", "failed"):
            made._connection.executescript("BEGIN;" + insert(rows, kind=kind, state=kind) + "COMMIT;")
        costs.append(work(made, look))
    assert costs[1] <= 2 * costs[0]
    made.close()

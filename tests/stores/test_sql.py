from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import fastqueue.stores
from fastqueue.errors import OptionError
from fastqueue.stores._sql import Call, Got, Statement, Statements, Steps, Tables, read, run, run_sync

STORES = Path(fastqueue.stores.__file__).parent
DIALECTS = sorted(path.stem for path in (STORES / "sql").glob("*.sql"))
VERBS = (
    *("meta", "lanes", "push", "claim", "settle", "give_back", "renew", "schedules", "hold_back"),
    *("failed", "jobs", "moves", "counts", "throttles", "prune", "wakes"),
)
ALIKE = {
    "meta.current",
    "meta.record",
    "meta.identity",
    "lanes.heads",
    "push.insert",
    "claim.take",
    "give_back.job",
    "renew.job",
    "schedules.recorded",
    "schedules.tell",
    "schedules.told",
    "hold_back.kind",
    "failed.page",
    "failed.run_again",
    "failed.forget",
    "jobs.page",
    "moves.begin",
    "moves.noted",
    "moves.note",
    "moves.first",
    "moves.take",
    "moves.leaving",
    "moves.left",
    "moves.taken",
    "moves.arrive",
    "counts.all",
    "throttles.hit",
    "throttles.tries",
    "throttles.clear",
    "prune.failed",
    "prune.kinds",
    "prune.throttles",
}

each_dialect = pytest.mark.parametrize("dialect", DIALECTS)


@each_dialect
def test_the_verbs_stand_in_one_order_in_every_dialect(dialect: str) -> None:
    verbs = list(dict.fromkeys(name.split(".")[0] for name, _, _ in read(dialect)))
    assert verbs == [verb for verb in VERBS if verb in verbs]


@each_dialect
def test_what_every_dialect_does_has_one_name(dialect: str) -> None:
    assert {name for name, _, _ in read(dialect)} >= ALIKE


def test_steps_that_dialects_share_stand_in_one_order() -> None:
    names = {dialect: [name for name, _, _ in read(dialect)] for dialect in DIALECTS}
    for one in DIALECTS:
        for other in DIALECTS:
            assert [name for name in names[one] if name in names[other]] == [
                name for name in names[other] if name in names[one]
            ], f"{one} and {other}"


@each_dialect
def test_a_statement_has_a_name_of_its_own_a_purpose_and_what_it_relies_on(dialect: str) -> None:
    source = (STORES / "sql" / f"{dialect}.sql").read_text()
    blocks = source.split("-- name: ")[1:]
    names = [block.split("\n")[0] for block in blocks]
    assert len(names) == len(set(names)) == len(read(dialect))
    odd = [
        block.split("\n")[0]
        for block in blocks
        if not re.match(r"\S+\n(-- (?!relies on)\S.*\n)+-- relies on: \S", block)
    ]
    assert not odd


@each_dialect
def test_an_index_that_a_statement_relies_on_is_one_that_the_migrations_make(dialect: str) -> None:
    made = "".join(path.read_text() for path in sorted((STORES / "migrations" / dialect).glob("*.sql")))
    indexes = {
        index for _, _, index in read(dialect) if index and not index.endswith("_pkey") and index != "primary key"
    }
    assert indexes
    assert not {index for index in indexes if f"{{bare:{index}}}" not in made}


def test_no_store_asks_for_its_dialect() -> None:
    asks = [
        f"{path.name}:{node.lineno}"
        for path in STORES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare | ast.Match) and "dialect" in ast.unparse(node).split("\n")[0]
    ]
    assert not asks


def test_a_place_is_written_as_the_driver_wants_it() -> None:
    statement = Statement("x", "SELECT :id, :now, :id")
    assert statement.render("numeric") == ("SELECT $1, $2, $1", ("id", "now"))
    assert statement.render("qmark") == ("SELECT ?, ?, ?", ("id", "now", "id"))
    assert statement.render("format") == ("SELECT %s, %s, %s", ("id", "now", "id"))


def test_values_are_bound_in_the_order_of_their_places() -> None:
    statement = Statement("x", "SELECT :b, :a, :b")
    assert statement.bind("qmark", {"a": 1, "b": 2}) == ("SELECT ?, ?, ?", (2, 1, 2))
    assert statement.bind("numeric", {"a": 1, "b": 2}) == ("SELECT $1, $2, $1", (2, 1))


@pytest.mark.parametrize("text", ["SELECT ':id'", "SELECT 'it''s :id'", "SELECT x::bigint", "SELECT 1 -- :id"])
def test_what_only_looks_like_a_place_stays(text: str) -> None:
    assert Statement("x", text).render("numeric") == (text, ())


def test_a_percent_sign_is_doubled_only_where_it_would_be_a_place() -> None:
    statement = Statement("x", "SELECT 5 % :n, 'a%'")
    assert statement.render("format")[0] == "SELECT 5 %% %s, 'a%%'"
    assert statement.render("qmark")[0] == "SELECT 5 % ?, 'a%'"


def test_an_insert_takes_several_rows_in_one_call() -> None:
    insert = Statement("x", "INSERT INTO t (a, b) VALUES (:a, :b) RETURNING id")
    call = insert.for_rows([{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    assert call.statement.name == "x"
    assert call.statement.bind("numeric", call.values) == (
        "INSERT INTO t (a, b) VALUES ($1, $2), ($3, $4) RETURNING id",
        (1, 2, 3, 4),
    )


def test_tables_are_named_with_the_prefix_and_the_schema() -> None:
    tables = Tables("app_", schema="jobs_of")
    assert tables.fill("INSERT INTO {held_kinds}") == 'INSERT INTO "jobs_of"."app_held_kinds"'
    assert tables.fill('CREATE INDEX "{bare:jobs_lane}" ON {jobs}') == (
        'CREATE INDEX "app_jobs_lane" ON "jobs_of"."app_jobs"'
    )
    assert Tables(quote="`").fill("DELETE FROM {jobs}") == "DELETE FROM `fastqueue_jobs`"


@pytest.mark.parametrize("name", ["", "1a", "a b", 'a"', "a`", "a;b", "a.b", "a-b", "é", "a\n", "{jobs}", "x" * 41])
def test_a_prefix_or_schema_that_is_no_plain_name_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match="cannot name tables"):
        Tables(name)
    with pytest.raises(OptionError, match="cannot name tables"):
        Tables(schema=name)


def test_statements_are_found_by_name_and_filled() -> None:
    statements = Statements("sqlite", Tables("app_"))
    assert '"app_jobs"' in statements["settle.gone"].text
    assert statements["claim.line"].relies_on == "jobs_lane"
    assert statements["counts.all"].relies_on is None
    assert [statement.name for statement in statements] == [name for name, _, _ in read("sqlite")]


ONE, TWO = Statement("one", "1"), Statement("two", "2")


def verb() -> Steps[list[int]]:
    first = yield Call(ONE, {})
    try:
        second = yield Call(TWO, {})
    except ValueError:
        second = yield Call(ONE, {})
    return [first.touched, second.touched]


def plain(call: Call) -> Got:
    return Got([], int(call.statement.text))


def failing(call: Call) -> Got:
    if call.statement is TWO:
        raise ValueError("no")
    return plain(call)


def broken(call: Call) -> Got:
    raise KeyError(call.statement.name)


async def test_a_verb_is_driven_by_an_awaited_driver() -> None:
    async def execute(call: Call) -> Got:
        return plain(call)

    assert await run(verb(), execute) == [1, 2]


def test_a_verb_is_driven_by_a_driver_of_plain_calls() -> None:
    assert run_sync(verb(), plain) == [1, 2]


async def test_a_driver_s_error_is_raised_where_the_verb_asked() -> None:
    async def execute(call: Call) -> Got:
        return failing(call)

    assert await run(verb(), execute) == [1, 1]
    assert run_sync(verb(), failing) == [1, 1]


async def test_an_error_that_the_verb_does_not_catch_reaches_the_caller() -> None:
    async def execute(call: Call) -> Got:
        return broken(call)

    with pytest.raises(KeyError, match="one"):
        await run(verb(), execute)
    with pytest.raises(KeyError, match="one"):
        run_sync(verb(), broken)

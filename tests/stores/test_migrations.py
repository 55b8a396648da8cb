from __future__ import annotations

from pathlib import Path

import pytest

import fastqueue.stores
from fastqueue.errors import SchemaMissing, SchemaTooNew, SchemaTooOld
from fastqueue.stores import _migrations
from fastqueue.stores._migrations import Migration, apply, load, missing, require_latest, sql_text
from fastqueue.stores._sql import Call, Got, Statement, Tables, run_sync

FOLDER = Path(fastqueue.stores.__file__).parent / "migrations"
DIALECTS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
TABLES = Tables("app_")
KNOWN = [Migration(1, "begin", ("CREATE 1", "CREATE 2")), Migration(2, "more", ("ALTER 1",))]
RECORD = Statement("meta.record", "INSERT")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_migrations_are_numbered_from_1_without_a_gap(dialect: str) -> None:
    found = load(dialect, TABLES)
    assert [migration.number for migration in found] == list(range(1, len(found) + 1))
    assert len(found) == len(list((FOLDER / dialect).glob("*.sql")))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_migration_is_filled_with_the_tables_names(dialect: str) -> None:
    texts = [text for migration in load(dialect, TABLES) for text in migration.statements]
    assert any("app_jobs" in text for text in texts)
    assert not [text for text in texts if "{" in text.replace("'{}'", "")]


def test_statements_are_parted_at_semicolons_outside_of_texts_bodies_and_comments() -> None:
    text = "A 'x;''y;' ;\n-- no; not here\nB $$ begin; end; $$;\nC $of$ $$;$$ $of$ ;\n"
    found = list(_migrations._statements(text))
    assert found == ["A 'x;''y;'", "-- no; not here\nB $$ begin; end; $$", "C $of$ $$;$$ $of$"]


def test_a_last_statement_without_its_end_is_an_error() -> None:
    with pytest.raises(ValueError, match="without a ';' after 'B'"):
        list(_migrations._statements("A;\nB -- ;\n"))


def test_a_comment_may_stand_at_the_end() -> None:
    assert list(_migrations._statements("A;\n-- that was it\n")) == ["A"]


def test_what_a_database_lacks_is_what_comes_after_its_number() -> None:
    assert [migration.number for migration in missing(KNOWN, 0, TABLES)] == [1, 2]
    assert [migration.number for migration in missing(KNOWN, 1, TABLES)] == [2]
    assert missing(KNOWN, 2, TABLES) == []


def test_tables_of_a_newer_version_are_refused_with_the_remedy() -> None:
    with pytest.raises(SchemaTooNew, match=r"app_\* are at migration 3 and .* knows 2: install the newer version"):
        missing(KNOWN, 3, TABLES)
    with pytest.raises(SchemaTooNew):
        require_latest(KNOWN, 3, TABLES)


def test_tables_that_are_not_there_or_old_are_refused_with_the_remedy() -> None:
    with pytest.raises(SchemaMissing, match=r"app_\* are not in the database: run `fastqueue migrate`"):
        require_latest(KNOWN, 0, TABLES)
    with pytest.raises(SchemaTooOld, match=r"app_\* are at migration 1 of 2: run `fastqueue migrate`"):
        require_latest(KNOWN, 1, TABLES)
    require_latest(KNOWN, 2, TABLES)


def test_each_migration_is_recorded_after_its_statements() -> None:
    asked: list[str] = []

    def execute(call: Call) -> Got:
        asked.append(f"{call.statement.text} {call.values.get('number', '')}".strip())
        return Got([], 0)

    assert run_sync(apply(KNOWN, record=RECORD, now=5), execute) == [1, 2]
    assert asked == ["CREATE 1", "CREATE 2", "INSERT 1", "ALTER 1", "INSERT 2"]


def test_the_text_records_what_it_did() -> None:
    text = sql_text(KNOWN[1:], TABLES, now="now()")
    assert text == (
        "-- fastqueue migration 2: more\n\n"
        "ALTER 1;\n\n"
        "INSERT INTO \"app_migrations\" (number, name, applied_at) VALUES (2, 'more', now());\n"
    )
    assert sql_text([], TABLES, now="now()") == ""

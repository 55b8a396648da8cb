"""Numbered migrations of a dialect: what they are, which of them a database lacks, and their text.

A file `migrations/<dialect>/0001_begin.sql` holds statements ended by `;`, with `{jobs}` where a table's name goes.
The first migration makes the table `{migrations}` too; a database without it is at number 0. How two instances are
kept apart while they migrate is each store's own matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files

from fastqueue.errors import SchemaMissing, SchemaTooNew, SchemaTooOld
from fastqueue.job import Moment
from fastqueue.stores._sql import Call, Statement, Steps, Tables

__all__ = ["Migration", "apply", "load", "missing", "require_latest", "sql_text"]

_FILE = re.compile(r"(?P<number>[0-9]{4})_(?P<name>[a-z0-9_]+)\.sql")
_END = re.compile(r"'(?:[^']|'')*'|--[^\n]*|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$|(?P<end>;)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Migration:
    """One step from a schema to the next.

    Attributes:
        statements: Its SQL for one set of tables, a text for each statement, without the `;`.
    """

    number: int
    name: str
    statements: tuple[str, ...]


def load(dialect: str, tables: Tables) -> list[Migration]:
    """Every migration of a dialect, by number, for one set of tables."""
    folder = files("fastqueue.stores") / "migrations" / dialect
    found: list[Migration] = []
    for file in folder.iterdir():
        named = _FILE.fullmatch(file.name)
        if named is not None:
            text = tables.fill(file.read_text(encoding="utf-8"))
            found.append(Migration(int(named["number"]), named["name"], tuple(_statements(text))))
    return sorted(found, key=lambda migration: migration.number)


def missing(known: Sequence[Migration], current: int, tables: Tables) -> list[Migration]:
    """Those that a database at number `current` lacks.

    Raises:
        SchemaTooNew: it is past the last one known.
    """
    latest = known[-1].number
    if current > latest:
        raise SchemaTooNew(
            f"the tables {tables.name('*')} are at migration {current} and this version of fastqueue knows {latest}: "
            f"install the newer version here too, or give this app a prefix of its own"
        )
    return [migration for migration in known if migration.number > current]


def require_latest(known: Sequence[Migration], current: int, tables: Tables) -> None:
    """Refuse a database that is not at the last migration known.

    Raises:
        SchemaMissing, SchemaTooOld, SchemaTooNew: it is not; the message holds the remedy.
    """
    if not missing(known, current, tables):
        return
    remedy = "run `fastqueue migrate` (or the text of `fastqueue sql`), or open the store with migrate=True"
    if current == 0:
        raise SchemaMissing(f"the tables {tables.name('*')} are not in the database: {remedy}")
    raise SchemaTooOld(
        f"the tables {tables.name('*')} are at migration {current} of {known[-1].number}: {remedy}",
    )


def apply(migrations: Sequence[Migration], *, record: Statement, now: Moment) -> Steps[list[int]]:
    """Run migrations in turn, recording each by `record` (:number, :name, :applied_at); answer their numbers."""
    for migration in migrations:
        for text in migration.statements:
            yield Call(Statement(f"migration.{migration.number}", text), {})
        yield Call(record, {"number": migration.number, "name": migration.name, "applied_at": now})
    return [migration.number for migration in migrations]


def sql_text(migrations: Sequence[Migration], tables: Tables, *, now: str) -> str:
    """Migrations as SQL text that also records them; `now` is the dialect's word for this moment in milliseconds."""
    parts: list[str] = []
    for migration in migrations:
        parts.append(f"-- fastqueue migration {migration.number}: {migration.name}")
        parts.extend(f"{text};" for text in migration.statements)
        parts.append(
            f"INSERT INTO {tables.quoted('migrations')} (number, name, applied_at) "  # noqa: S608 - names of our own
            f"VALUES ({migration.number}, '{migration.name}', {now});"
        )
    return "\n\n".join(parts) + "\n" if parts else ""


def _statements(text: str) -> Iterator[str]:
    begin = 0
    for found in _END.finditer(text):
        if found["end"] is not None:
            yield text[begin : found.start()].strip()
            begin = found.end()
    rest = re.sub(r"--[^\n]*", "", text[begin:]).strip()
    if rest:
        raise ValueError(f"a migration ends without a ';' after {rest[:60]!r}")

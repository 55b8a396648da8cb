"""Where the SQLite store's tables are, for those who push through connections of their own."""

from __future__ import annotations

import os

from fastqueue.stores._sql import Call, Statement, Steps, Tables
from fastqueue.stores.joins import Home, Push

__all__ = ["SQLiteHome"]

_LOOK = Statement(
    "joins.look",
    "SELECT (SELECT file FROM pragma_database_list WHERE name = 'main'),"
    " EXISTS (SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = :name)",
)


class SQLiteHome(Home):
    """The tables in the file at `path`."""

    store = "sqlite"
    dialects = frozenset({"sqlite"})

    def __init__(self, path: str, tables: Tables, push: Push) -> None:
        super().__init__(tables, push)
        self._path = path

    def _check(self) -> Steps[None]:
        ((file, there),) = (yield Call(_LOOK, {"name": self._tables.name("jobs")})).rows
        file = os.fsdecode(file)
        if not _same_file(file, self._path):
            raise self._elsewhere("a connection", file or "a database in memory", self._path)
        if not there:
            raise self._missing(file)


def _same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False

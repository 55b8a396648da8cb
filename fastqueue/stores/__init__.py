"""The stores: memory, which is the contract as a program, and one for each database.

A store's module is imported only when it is asked for, since each needs its driver. What several share is beside them:

- `_sql`: named statements, and verbs as steps; `sql/` has the statements of each dialect, `_rows` their columns.
- `_sql_store`, `_sql_faculties`, `_sql_moves`: what PostgreSQL, MySQL and SQLite do alike, by those statements.
- `_sql_migrates`, `_migrations`: the tables, from the texts in `migrations/`.
- `joins`: pushes inside transactions of the app's.
- `_server_wakes`: a line to a server that is made again when it is lost.
- `_limits`: what is to be said of a server's connections.
- `_kept`: the jobs that the memory store keeps.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fastqueue.errors import OptionError
from fastqueue.store import Store

__all__ = ["store_of"]

_BY_SCHEME = {
    "memory": ("memory", "MemoryStore"),
    "inline": ("inline", "InlineStore"),
    "sqlite": ("sqlite", "SQLiteStore"),
    "postgresql": ("postgres", "PostgresStore"),
    "postgres": ("postgres", "PostgresStore"),
    "mysql": ("mysql", "MySQLStore"),
    "mariadb": ("mysql", "MySQLStore"),
    "redis": ("redis", "RedisStore"),
    "rediss": ("redis", "RedisStore"),
    "unix": ("redis", "RedisStore"),
}


def store_of(where: Store | str) -> Store:
    """The store a queue was given, or the one that a URL names.

    Raises:
        OptionError: it is neither, or no store has the URL's scheme.
        MissingDriver: the store's package is not installed.
    """
    if isinstance(where, Store):
        return where
    if not isinstance(where, str) or "://" not in where:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"{where!r} is no store: give a Store, or a URL such as sqlite:///app.db")
    scheme = where.partition("://")[0].partition("+")[0].lower()
    if scheme not in _BY_SCHEME:
        known = ", ".join(f"{name}://" for name in _BY_SCHEME)
        raise OptionError(f"no store for {scheme}:// URLs; there are {known}")
    module, name = _BY_SCHEME[scheme]
    made: Any = getattr(import_module(f"fastqueue.stores.{module}"), name)
    store: Store = (
        made() if scheme in ("memory", "inline") else made.from_url(where) if hasattr(made, "from_url") else made(where)
    )
    return store

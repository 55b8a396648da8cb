"""The SQLite store, one module for each thing it does.

- `store`: the store itself; each verb is a function that its thread runs.
- `_thread`: the one thread that owns the connection, and the transactions that its callers share.
- `_database`: the file, opened; what goes wrong with it, in words.
- `_push`, `_claim`: the two verbs that are more than a statement.
- `_faculties`, `_wakes`, `_migrates`: what it can do beyond the verbs.
"""

from fastqueue.stores.sqlite.store import SQLiteStore

__all__ = ["SQLiteStore"]

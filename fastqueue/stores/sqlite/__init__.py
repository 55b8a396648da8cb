"""The SQLite store, one module for each thing it does.

- `store`: the store itself; each verb is a function that its thread runs.
- `_access`: the way to that thread.
- `_thread`: the one thread that owns the connection, and the transactions that its callers share.
- `_database`: the file, opened; what goes wrong with it, in words.
- `_push`, `_claim`, `_settle`: the verbs that are more than a statement.
- `_faculties`, `_wakes`, `_migrates`, `_moves`, `_inspects`: what it does in its own way beyond the verbs.
- `_watch`: what others have written. `_home`: where the tables are, for transactions of the app's.
"""

from fastqueue.stores.sqlite.store import SQLiteStore

__all__ = ["SQLiteStore"]

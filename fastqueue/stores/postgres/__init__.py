"""The PostgreSQL store, one module for each thing it does.

- `store`: the store itself.
- `_address`: where the server is, from URLs of every habit.
- `_connections`: the few connections of a process, and what goes wrong with them, in words.
- `_push`, `_claim`, `_settle`: the verbs that are more than a statement.
- `_faculties`, `_wakes`, `_migrates`: what it can do beyond the verbs.
"""

from fastqueue.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]

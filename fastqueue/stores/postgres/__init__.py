"""The PostgreSQL store, one module for each thing it does.

- `store`: the store itself.
- `_address`: where the server is, from URLs of every habit.
- `_connections`: the few connections of a process, and what goes wrong with them, in words.
- `_access`: statements and transactions on them.
- `_push`, `_claim`, `_settle`: the verbs that are more than a statement.
- `_faculties`, `_wakes`, `_migrates`, `_moves`, `_inspects`: what it does in its own way beyond the verbs.
- `_home`: where the tables are, for transactions of the app's.
"""

from fastqueue.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]

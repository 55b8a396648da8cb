"""The MySQL and MariaDB store, one module for each thing it does.

- `store`: the store itself.
- `_address`: where the server is, from URLs of every habit.
- `_connections`: the few connections of a process, and what goes wrong with them, in words.
- `_access`: statements and transactions on them, run again when the server had to choose whom to refuse.
- `_repeats`: statements that take as many rows as they are given.
- `_lanes`: the lanes that are known to be in the database.
- `_names`: how long names and keys may be.
- `_push`, `_claim`, `_walk`, `_settle`: the verbs that are more than a statement.
- `_faculties`, `_migrates`, `_moves`, `_inspects`: what it does in its own way beyond the verbs.
- `_home`: where the tables are, for transactions of the app's.
"""

from fastqueue.stores.mysql.store import MySQLStore

__all__ = ["MySQLStore"]

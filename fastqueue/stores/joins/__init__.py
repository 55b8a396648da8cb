"""Pushes inside transactions of the app's, by whatever the app holds them.

- `_joins`: the faculty that a store has.
- `_handles`: which object it was given, and what is wrong with one that is no open transaction.
- `_sqlalchemy`, `_drivers`: how a statement is run on each, and whether it would be part of a transaction now.
- `_homes`: how a connection is known to lead to the queue's own tables; what differs by store is beside the store.
- `_commits`: being told when a session of SQLAlchemy's has committed.
- `_waiting`: who waits for a commit, on a session or on a connection that the store has lent for a transaction.

No driver is imported: an object of a driver's cannot be there before its module is, so that is looked up where it is.
"""

from fastqueue.stores.joins._commits import after_commit
from fastqueue.stores.joins._homes import Home, Push, ServerHome, ended_within
from fastqueue.stores.joins._joins import SQLJoins

__all__ = ["Home", "Push", "SQLJoins", "ServerHome", "after_commit", "ended_within"]

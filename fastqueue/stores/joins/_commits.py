"""Being told when a session of SQLAlchemy's has really committed.

Its event `after_commit` comes at the release of a savepoint too, and no event says that a session was closed without a
commit. So what waits for the commit is kept beside the transaction or savepoint that it was pushed in: the release of a
savepoint hands it to what is around it, and the end of one that did not commit takes it away.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import Any

from fastqueue.stores.joins._handles import session_of
from fastqueue.stores.joins._waiting import Calls, committed, rolled_back

__all__ = ["after_commit"]

_KEY = "fastqueue.waiting"
_listening = False
_first = Lock()


def after_commit(handle: object, call: Callable[[], None], *, pushed: int) -> bool:
    """Have `call` called once, when the transaction that a session of SQLAlchemy's is in has really committed.

    A savepoint that is rolled back takes along what was asked for within it. `call` runs in the thread of the commit,
    where no SQL is allowed. A session that has not begun yet begins.

    Args:
        handle: Whatever the app holds its transaction by.
        call: Equal ones are called once for all.
        pushed: How many jobs hang on the commit; a line in the log says that they went when there is none.

    Returns:
        False: this handle does not tell; nothing will be called.
    """
    session = session_of(handle)
    if session is None:
        return False
    _listen()
    if not session.in_transaction() and session.autobegin:
        session.begin()
    around = session.get_nested_transaction() or session.get_transaction()
    if around is None:
        return False
    waiting: dict[Any, Calls] = session.info.setdefault(_KEY, {})
    waiting.setdefault(around, Counter())[call] += pushed
    return True


def _listen() -> None:
    """Listen on all sessions there are and will be: listening on one costs more than a push."""
    global _listening
    with _first:
        if not _listening:
            sessions, event = sys.modules["sqlalchemy.orm"].Session, sys.modules["sqlalchemy"].event
            event.listen(sessions, "after_commit", _committed)
            event.listen(sessions, "after_transaction_end", _ended)
            _listening = True


def _committed(session: Any) -> None:
    waiting: dict[Any, Calls] | None = session.info.get(_KEY)
    if not waiting:
        return
    savepoint = session.get_nested_transaction()
    if savepoint is not None:
        released = waiting.pop(savepoint, None)
        if released:
            waiting.setdefault(savepoint.parent, Counter()).update(released)
        return
    committed(sum(waiting.values(), Counter()))
    waiting.clear()


def _ended(session: Any, transaction: Any) -> None:
    waiting: dict[Any, Calls] | None = session.info.get(_KEY)
    if waiting and transaction in waiting:
        rolled_back(waiting.pop(transaction))

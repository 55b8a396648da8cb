"""A store for those who want none: its queue runs each job inside the push."""

from __future__ import annotations

from fastqueue.store import Keep
from fastqueue.stores.memory import MemoryStore

__all__ = ["InlineStore"]


class InlineStore(MemoryStore):
    """Keeps no jobs: a queue on it has run the job when the push is over. For scripts, and to follow a job by hand.

    What limits how many run at once, a rate and a schedule are refused: there is no line in which a job could wait.
    """

    name = "inline"
    for_workers = False
    keeps = frozenset(Keep) - {Keep.ONE_AT_A_TIME, Keep.AT_ONCE}

    def __init__(self) -> None:
        super().__init__()
        self.schedules = self.holds = None

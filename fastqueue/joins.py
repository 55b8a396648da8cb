"""The port's part on transactions of the app's: pushes that are kept with the rest of one, or not at all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from fastqueue.job import Moment, NewJob, Pushed

__all__ = ["Enlisted", "Joins"]


class Enlisted(ABC):
    """A store on a transaction of the app's: what is pushed through it is kept if that commits, and only then."""

    sync: bool
    """Whether statements on this transaction are plain calls (`push_sync`) rather than awaited (`push`)."""

    @abstractmethod
    async def push(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        """X1: as `Store.push`, inside the transaction, telling nobody. On a sync handle it runs inline."""

    @abstractmethod
    def push_sync(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        """The same as a plain call; only when `sync`."""

    @abstractmethod
    def after_commit(self, wake: Callable[[], None], *, pushed: int) -> bool:
        """Have `wake` called once when the transaction has really committed; False: this handle cannot tell.

        When it is rolled back, a line says that `pushed` jobs went with it.
        """


class Joins(ABC):
    """Faculty: pushes can be part of a transaction of the app's on the same database."""

    @abstractmethod
    def enlist(self, handle: object) -> Enlisted:
        """A store on the caller's open transaction.

        Raises:
            TransactionRefused: `handle` is no connection or session this store can be reached through.
        """

    @abstractmethod
    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """A transaction of the app's on a connection of the store's own; as it is entered, that, fit for `enlist`.

        X2: it is committed when its block is left, and rolled back, with nothing of it left open, when any exception
        leaves the block, a cancellation among them. Its `after_commit` is called after the commit, and not otherwise.

        Raises:
            StoreUnavailable: it could not begin. What the driver raises after that comes as it is.
            TransactionEnded: within the block it was ended, or failed; what came before may not be kept.
        """

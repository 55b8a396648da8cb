"""Events: something happened, and each of its listeners is a job of its own.

A listener is a kind whose value is the event. Publishing pushes a job to every listener of the event's type, all or
none; each then runs, fails and is tried again by itself.

Example:
    ```python
    events = Events()


    @events.handle("update-stock")
    async def update_stock(event: OrderShipped) -> None: ...


    @events.handle("tell-the-buyer", attempts=3)
    async def tell_the_buyer(event: OrderShipped) -> None: ...


    queue.include(events)

    await events.in_(session).publish(OrderShipped(order=7))  # two jobs, if the session commits
    ```
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any

from fastqueue.errors import KindError
from fastqueue.job import Pushed
from fastqueue.kind import Kind, Transaction
from fastqueue.kinds import Kinds
from fastqueue.pushing import Pushing

__all__ = ["Events", "Publishing"]


class Publishing(ABC):
    """Publishes events to one place: the queue's own store, or a transaction of yours."""

    @abstractmethod
    def _pushing(self, event: object) -> Pushing[Any] | None:
        """The pushes to the listeners of an event; None: nobody listens."""

    def publish(self, event: object) -> Coroutine[Any, Any, list[Pushed]]:
        """Push a job to each listener of the event's type, all or none. Awaited; plain functions use `publish_sync`.

        What a listener raises when it runs concerns its own job: only what keeps the jobs from being pushed is raised.

        Args:
            event: What happened. Its class is what listeners are found by: exactly it, no class above it.

        Returns:
            The answer of each listener's push, in the order in which they were registered; none: nobody listens.

        Raises:
            RegistrationError: no queue includes the listeners yet.
            ValueRefused: the event would not come back as it is.
            StoreUnavailable: the store failed. Nothing was kept.
        """
        pushing = self._pushing(event)
        return _nobody_listens() if pushing is None else pushing.push_many([event])

    def publish_sync(self, event: object) -> list[Pushed]:
        """`publish` for plain functions, such as `def` routes and sync sessions: done when it returns."""
        pushing = self._pushing(event)
        return [] if pushing is None else pushing.push_many_sync([event])


class Events(Kinds, Publishing):
    """Listeners, registered as kinds are, and the publishing of the events that they take.

    The type of a listener's first parameter is the event it listens to, and its name is what the store keeps: stable
    across deploys. `queue.include(events)` joins them to a queue.

    Raises:
        KindError: a listener's value is of no class, so that no event could be found by it.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass
        ... class OrderShipped:
        ...     order: int
        >>> events = Events()
        >>> @events.handle("update-stock")
        ... async def update_stock(event: OrderShipped) -> None: ...
        >>> [listener.name for listener in events.listeners(OrderShipped)]
        ['update-stock']
    """

    def listeners(self, event: type) -> list[Kind[Any]]:
        """The listeners of a type of event, in the order in which they were registered."""
        return [kind for kind in self if kind.codec.type is event]

    def in_(self, tx: Transaction, /) -> Publishing:
        """Publish inside a transaction that is yours: the jobs are kept if it commits, and gone if it does not.

        Args:
            tx: Whatever `Kind.in_` takes.
        """
        return _InTransaction(self, tx)

    def _pushing(self, event: object) -> Pushing[Any] | None:
        listeners = self.listeners(type(event))
        return listeners[0].road.own_store(*listeners) if listeners else None

    def _add(self, kind: Kind[Any]) -> Kind[Any]:
        if not isinstance(kind.codec.type, type):
            raise KindError(
                f"listener {kind.name!r} takes {kind.codec.type!r}, which is no class that an event could be of: "
                "annotate its first parameter with the event's class"
            )
        return super()._add(kind)


class _InTransaction(Publishing):
    def __init__(self, events: Events, tx: Transaction) -> None:
        self._events, self._tx = events, tx

    def _pushing(self, event: object) -> Pushing[Any] | None:
        listeners = self._events.listeners(type(event))
        return listeners[0].road.transaction_of(self._tx, *listeners) if listeners else None


async def _nobody_listens() -> list[Pushed]:
    return []

"""The pushes of one kind to one place, with every option they take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable, Sequence
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from fastqueue.backoff import Backoff
from fastqueue.job import Pushed
from fastqueue.options import Given
from fastqueue.settings import UNSET, Seconds, Unset

__all__ = ["AS_IT_IS", "How", "Pushing"]

T = TypeVar("T")


class How(NamedTuple):
    """The options of one push."""

    delay: Seconds | None
    at: datetime | None
    given: Given


AS_IT_IS = How(None, None, Given())
"""A push that sets nothing of its own."""


class Pushing(ABC, Generic[T]):
    """Pushes of one kind to one place: the queue's own store, or a transaction of yours.

    Every push takes the same options:

    Args:
        delay: How long until it is due, as seconds or a timedelta. Default: due at once.
        at: When it is due, as an aware datetime; a past one means at once. Not with `delay`.
        queue: The named queue it waits in. Default: its kind's.
        attempts, retries: Runs in all, or runs after the first. Default: its kind's.
        timeout: The time limit of a run; None: none. Default: its kind's.
        backoff: `quartic()`, `exponential(...)` or `constant(...)`. Default: its kind's.

    Raises:
        ValueRefused: the value would not come back as it went in.
        OptionError: an option that cannot be.
        CarriedTooLarge: the carriers gave more than a job may keep.
        StoreUnavailable: the store failed. Nothing was kept.
        WrongPlace: `push` where nobody can await it, or `push_sync` on the event loop.

    Example:
        >>> async def remind(greet: Pushing[str]) -> int:
        ...     return (await greet.push("Ann", delay=86_400, attempts=3)).id
    """

    @abstractmethod
    def _push(self, values: Sequence[T], how: How) -> Coroutine[Any, Any, list[Pushed]]: ...

    @abstractmethod
    def _push_sync(self, values: Sequence[T], how: How) -> list[Pushed]: ...

    @abstractmethod
    def _check_awaitable(self) -> None:
        """Refuse where a coroutine would be lost."""

    def push(
        self,
        value: T,
        *,
        delay: Seconds | None = None,
        at: datetime | None = None,
        queue: str | None = None,
        attempts: int | None = None,
        retries: int | None = None,
        timeout: Seconds | Unset | None = UNSET,
        backoff: Backoff | None = None,
    ) -> Coroutine[Any, Any, Pushed]:
        """Push one job, and answer its id and whether it is new. Awaited; a plain function uses `push_sync`."""
        self._check_awaitable()
        given = Given(queue=queue, attempts=attempts, retries=retries, timeout=timeout, backoff=backoff)
        return self._first(self._push([value], How(delay, at, given)))

    def push_many(
        self,
        values: Iterable[T],
        *,
        delay: Seconds | None = None,
        at: datetime | None = None,
        queue: str | None = None,
        attempts: int | None = None,
        retries: int | None = None,
        timeout: Seconds | Unset | None = UNSET,
        backoff: Backoff | None = None,
    ) -> Coroutine[Any, Any, list[Pushed]]:
        """Push a job for each value, all or none, and answer in their order."""
        self._check_awaitable()
        given = Given(queue=queue, attempts=attempts, retries=retries, timeout=timeout, backoff=backoff)
        return self._push(list(values), How(delay, at, given))

    def push_sync(
        self,
        value: T,
        *,
        delay: Seconds | None = None,
        at: datetime | None = None,
        queue: str | None = None,
        attempts: int | None = None,
        retries: int | None = None,
        timeout: Seconds | Unset | None = UNSET,
        backoff: Backoff | None = None,
    ) -> Pushed:
        """`push` for plain functions, such as `def` routes and sync sessions: done when it returns."""
        given = Given(queue=queue, attempts=attempts, retries=retries, timeout=timeout, backoff=backoff)
        return self._push_sync([value], How(delay, at, given))[0]

    def push_many_sync(
        self,
        values: Iterable[T],
        *,
        delay: Seconds | None = None,
        at: datetime | None = None,
        queue: str | None = None,
        attempts: int | None = None,
        retries: int | None = None,
        timeout: Seconds | Unset | None = UNSET,
        backoff: Backoff | None = None,
    ) -> list[Pushed]:
        """`push_many` for plain functions."""
        given = Given(queue=queue, attempts=attempts, retries=retries, timeout=timeout, backoff=backoff)
        return self._push_sync(list(values), How(delay, at, given))

    @staticmethod
    async def _first(pushed: Coroutine[Any, Any, list[Pushed]]) -> Pushed:
        return (await pushed)[0]

"""How fast the jobs of a kind may start: the limiter that is asked before each run, and the one that is built in."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol, TypeAlias

from fastqueue.errors import OptionError
from fastqueue.job import Moment
from fastqueue.settings import Seconds, as_count, as_ms

__all__ = ["Limiter", "Throttle"]


class Limiter(Protocol):
    """Says whether a job of a kind may start now. Any object with this method will do.

    Example:
        >>> class OnlyWhileOpen:
        ...     is_open = True
        ...     async def ask(self, kind: str, /) -> float:
        ...         return 0 if self.is_open else 60
        >>> rate: Limiter = OnlyWhileOpen()
    """

    def ask(self, kind: str, /) -> Awaitable[Seconds]:
        """Count one start of the kind, and answer 0 or less: go; or how long the kind is to wait.

        When it raises, the kind is held back for 10 seconds. Either way a job that may not start keeps its attempt.

        Args:
            kind: The name of the job's kind.

        Returns:
            Seconds or a timedelta.
        """
        ...


Hit: TypeAlias = Callable[..., Awaitable[Any]]


class _Counts(Protocol):
    """Where tries are counted: a store's faculty `throttles`."""

    @property
    def hit(self) -> Hit: ...


class _Counted(Protocol):
    """A store that counts tries."""

    @property
    def throttles(self) -> _Counts | None: ...


@dataclass(frozen=True, slots=True)
class Throttle:
    """At most `max` starts in each `window`, over all instances, counted in a store.

    The window is fixed: it begins with its first start and ends `window` later whatever comes meanwhile. A start that
    is refused counts, and does not lengthen it.

    Args:
        max: Starts in a window, 1 or more. Default 5.
        window: Its length, as seconds or a timedelta; 1 ms or more. Default 60 s.
        name: Limiters that share a name share the count of each kind. Default "rate".
        store: Where it counts. None: in the store of the queue whose kind it limits.

    Raises:
        OptionError: `max` or `window` is not as above, or the store does not count tries.

    Example:
        >>> newsletter_rate = Throttle(14, window=1)
    """

    max: int = 5
    window: Seconds = 60
    name: str = "rate"
    store: _Counted | None = None

    def __post_init__(self) -> None:
        as_count("max", self.max)
        if as_ms("window", self.window) < 1:
            raise OptionError(f"window={self.window!r}; a throttle counts in a window of 1 ms or more")
        if self.store is not None and self.store.throttles is None:
            raise OptionError(f"store={self.store!r} does not count tries; leave it out to count in the queue's own")

    async def ask(self, kind: str, /) -> Seconds:
        """Count one start in the store it was given."""
        if self.store is None or self.store.throttles is None:
            raise OptionError("this Throttle has no store; a queue gives it its own, or pass store=")
        return await self._hit(self.store.throttles, time.time_ns() // 1_000_000, kind)

    def on(self, counts: _Counts, now: Callable[[], Moment]) -> Limiter:
        """This limit, counted in a queue's store by the queue's clock; with a store of its own, as it is."""
        return self if self.store is not None else _Bound(self, counts, now)

    async def _hit(self, counts: _Counts, now: Moment, kind: str) -> Seconds:
        hits = await counts.hit(self._key(kind), now=now, window_ms=as_ms("window", self.window))
        if hits.tries <= self.max:
            return 0
        return timedelta(milliseconds=max(hits.ends - now, 1))

    def _key(self, kind: str) -> str:
        return hashlib.sha256(f"{self.name}\0{kind}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Bound:
    throttle: Throttle
    counts: _Counts
    now: Callable[[], Moment]

    async def ask(self, kind: str, /) -> Seconds:
        return await self.throttle._hit(self.counts, self.now(), kind)

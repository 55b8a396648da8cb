"""Kinds as they are registered: with a queue, or in a module that does not know it."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar, overload

from typing_extensions import TypeForm

from fastqueue.backoff import Backoff
from fastqueue.errors import KindError, OptionError, RegistrationError
from fastqueue.kind import Kind, Run
from fastqueue.limits import Limiter
from fastqueue.options import Given
from fastqueue.settings import UNSET, Seconds, Unset, nearest
from fastqueue.signature import read_handler
from fastqueue.unique import Unique

__all__ = ["HandleDecorator", "Kinds"]

T = TypeVar("T")

Nothing: TypeAlias = Awaitable[None] | None
"""What a handler returns: nothing, now or awaited."""


class HandleDecorator(Protocol):
    """What `handle("name")` returns: given the handler, it makes the kind."""

    @overload
    def __call__(self, function: Callable[[T], Nothing], /) -> Kind[T]: ...
    @overload
    def __call__(self, function: Callable[[T, Run], Nothing], /) -> Kind[T]: ...


class Kinds:
    """Kinds gathered in a module that does not know the queue; `queue.include(kinds)` joins them to it.

    Example:
        >>> kinds = Kinds()
        >>> @kinds.handle("greet")
        ... async def greet(name: str) -> None:
        ...     print("hello", name)
    """

    def __init__(self) -> None:
        self._kinds: dict[str, Kind[Any]] = {}

    @overload
    def handle(
        self,
        name: str,
        /,
        *,
        attempts: int | None = None,
        retries: int | None = None,
        backoff: Backoff | None = None,
        timeout: Seconds | Unset | None = UNSET,
        unique: Unique | bool | None = None,
        at_once: int | None = None,
        rate: Limiter | None = None,
        queue: str | None = None,
    ) -> HandleDecorator: ...
    @overload
    def handle(
        self,
        name: str,
        function: Callable[[T], Nothing],
        /,
        *,
        attempts: int | None = None,
        retries: int | None = None,
        backoff: Backoff | None = None,
        timeout: Seconds | Unset | None = UNSET,
        unique: Unique | bool | None = None,
        at_once: int | None = None,
        rate: Limiter | None = None,
        queue: str | None = None,
    ) -> Kind[T]: ...
    @overload
    def handle(
        self,
        name: str,
        function: Callable[[T, Run], Nothing],
        /,
        *,
        attempts: int | None = None,
        retries: int | None = None,
        backoff: Backoff | None = None,
        timeout: Seconds | Unset | None = UNSET,
        unique: Unique | bool | None = None,
        at_once: int | None = None,
        rate: Limiter | None = None,
        queue: str | None = None,
    ) -> Kind[T]: ...
    def handle(self, name: str, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Make a kind of a function that does its jobs; as a decorator, or with the function as second argument.

        The type of the value is read from the annotation of the function's first parameter: anything pydantic takes. A
        second parameter annotated `Run` is given what is known of the attempt. `async def` functions run on the event
        loop, plain ones in a thread.

        Args:
            name: What the store keeps to find the handler by: stable across deploys.
            function: The handler. Default: what the decorator is put on.
            attempts, retries: Runs in all, or runs after the first. Default 10 runs.
            backoff: The wait after a failed attempt: `quartic()`, `exponential(...)`, `constant(...)` or a function of
                the attempt. Default `quartic()`.
            timeout: The time limit of a run, as seconds or a timedelta; None: none. Default 60 s.
            unique: True, or `Unique(...)`: one job of each value waits.
            at_once: No more than this many run at once, over all instances. Default: no limit.
            rate: A limiter that each start asks, such as `Throttle(14, 1)`.
            queue: The named queue its jobs wait in. Default "default".

        Raises:
            KindError: the handler's value type cannot be read; the message says which parameter and what to write.
            OptionError: an option that cannot be.
            RegistrationError: the name has a handler already, or the queue has run.
            Unsupported: the store does not keep what an option asks for.
        """
        if callable(name):
            raise KindError(f'handle needs a name: write @queue.handle("{getattr(name, "__name__", "name")}")')
        unknown = options.keys() - set(Given._fields)
        if unknown:
            odd = min(unknown)
            raise OptionError(f"kind {name!r}: there is no option {odd!r}; {nearest(odd, Given._fields)}")
        given = Given(**options)
        local_names = _caller_locals()

        def decorate(function: Callable[..., Any]) -> Kind[Any]:
            handler = read_handler(name, function, run_type=Run, locals=local_names)
            return self._add(Kind(name, handler.value_type, handler, given))

        return decorate if function is None else decorate(function)

    def kind(
        self,
        name: str,
        value: TypeForm[T],
        /,
        *,
        attempts: int | None = None,
        retries: int | None = None,
        backoff: Backoff | None = None,
        timeout: Seconds | Unset | None = UNSET,
        unique: Unique | bool | None = None,
        at_once: int | None = None,
        queue: str | None = None,
    ) -> Kind[T]:
        """A kind that is pushed here and handled in another process or code base; its jobs are never claimed here.

        Args:
            name: The name its handler has elsewhere.
            value: The type of its values.
            attempts, retries, backoff, timeout, unique, at_once, queue: As in `handle`. How many attempts a run
                has, how long it may take and when the next comes is its handler's to say.

        Raises:
            KindError: pydantic cannot take the type.
            OptionError: an option that cannot be.
            RegistrationError: the name is there already, or the queue has run.

        Example:
            >>> kinds = Kinds()
            >>> kinds.kind("search-index", int)
            <Kind 'search-index'>
        """
        given = Given(
            attempts=attempts,
            retries=retries,
            backoff=backoff,
            timeout=timeout,
            unique=unique,
            at_once=at_once,
            queue=queue,
        )
        return self._add(Kind(name, value, None, given))

    def __iter__(self) -> Iterator[Kind[Any]]:
        return iter(self._kinds.values())

    def _add(self, kind: Kind[Any]) -> Kind[Any]:
        if kind.name in self._kinds:
            raise RegistrationError(f"kind {kind.name!r} is there already; each name has one handler: rename this one")
        self._kinds[kind.name] = kind
        return kind


def _caller_locals() -> Mapping[str, Any]:
    """The names local to the function that registers, where models are often defined beside their handlers."""
    return sys._getframe(2).f_locals

"""What a job brings along from the place it was pushed in to the place it runs in."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Protocol

from fastqueue.errors import CarriedTooLarge, OptionError
from fastqueue.settings import as_list

__all__ = ["MAX_CARRIED_BYTES", "Carrier", "CarryVar", "carried_text", "carriers_of"]

MAX_CARRIED_BYTES = 4096


class Carrier(Protocol):
    """Takes something from the context of a push, and gives it back to the context of the run.

    Both sides are context managers, so that a carrier can also span the push and the run: a trace does. What the
    running side is given has been in a database: it distrusts it as it would a header.

    Example:
        >>> from contextlib import nullcontext
        >>> class CarryHost:
        ...     def pushing(self, kind, queue, carried, count, /):
        ...         carried["host"] = "web-1"
        ...         return nullcontext()
        ...     def running(self, kind, queue, carried, attempt, /):
        ...         return nullcontext(print("pushed on", carried.get("host")))
        >>> carry = [CarryHost()]
    """

    def pushing(self, kind: str, queue: str, carried: dict[str, str], count: int, /) -> AbstractContextManager[None]:
        """Around a push of so many jobs: put into `carried`, under a name of your own, what each is to bring."""
        ...

    def running(
        self, kind: str, queue: str, carried: Mapping[str, str], attempt: int, /
    ) -> AbstractContextManager[None]:
        """Around a run and its limiter, and around an `on_fail`: give back what was carried, which may be nothing."""
        ...


def carriers_of(given: Iterable[Carrier]) -> tuple[Carrier, ...]:
    """What a queue was given as carriers.

    Raises:
        OptionError: it is no list, or something in it is no carrier; the message names it.
    """
    for carrier in (found := as_list("carry", given)):
        methods = (getattr(carrier, name, None) for name in ("pushing", "running"))
        if isinstance(carrier, type) or not all(map(callable, methods)):
            raise OptionError(f"carry has {carrier!r}, which is no carrier; it takes such as CarryRequestID()")
    return tuple(found)


class CarryVar:
    """Carries the value of a `ContextVar[str]`.

    Args:
        var: The variable. A push where it is unset or None carries nothing.
        name: The name it is carried by; None: the variable's own.

    Raises:
        OptionError: it is no `ContextVar`.

    Example:
        >>> from contextvars import ContextVar
        >>> tenant: ContextVar[str | None] = ContextVar("tenant", default=None)
        >>> carry = [CarryVar(tenant)]
    """

    def __init__(self, var: ContextVar[str] | ContextVar[str | None], *, name: str | None = None) -> None:
        if not isinstance(var, ContextVar):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"CarryVar takes a contextvars.ContextVar, not {var!r}")
        self.var: ContextVar[str | None] = var  # type: ignore[assignment]
        self.name = name or var.name

    def pushing(self, kind: str, queue: str, carried: dict[str, str], count: int, /) -> AbstractContextManager[None]:
        """Take the variable's value along."""
        if (value := self.var.get(None)) is not None:
            carried[self.name] = value
        return nullcontext()

    @contextmanager
    def running(self, kind: str, queue: str, carried: Mapping[str, str], attempt: int, /) -> Generator[None]:
        """Set the variable for the run."""
        if self.name not in carried:
            yield
            return
        before = self.var.set(carried[self.name])
        try:
            yield
        finally:
            self.var.reset(before)


def carried_text(kind: str, carried: Mapping[str, str]) -> str | None:
    """What is kept with the job: the carried names and values as JSON text; None when there are none.

    Raises:
        CarriedTooLarge: it is over 4096 bytes.
        OptionError: a name or value is not text.
    """
    if not carried:
        return None
    for name, value in carried.items():
        if not isinstance(name, str) or not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"{kind!r} would carry {name!r}={value!r}; a carrier gives names and values as str")
    text = json.dumps(dict(sorted(carried.items())), separators=(",", ":"), ensure_ascii=True)
    if len(text) > MAX_CARRIED_BYTES:
        raise CarriedTooLarge(
            f"{kind!r} would carry {len(text)} bytes and a job keeps at most {MAX_CARRIED_BYTES}: "
            f"carry an ID and look the rest up ({', '.join(sorted(carried))})"
        )
    return text

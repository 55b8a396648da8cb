"""What the signature of a handler says: the type of its value, whether it takes the run, and how it is called."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from fastqueue.errors import KindError

__all__ = ["Handler", "read_handler"]

_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_NEEDS_NOTHING = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)

_LAYERS = 100
"""Wrappers that are looked behind: an object that answers to every name seems to wrap without end."""


@dataclass(frozen=True, slots=True)
class Handler:
    """A function that does the jobs of a kind, and how to call it.

    Attributes:
        function: What is called, as it was given.
        value_type: The evaluated annotation of its first parameter.
        takes_run: Whether it is called with the run as well, second and by position.
        is_async: Whether the call answers a coroutine. A plain function may answer an awaitable all the same, when it
            wraps an async one.
    """

    function: Callable[..., Any]
    value_type: Any
    takes_run: bool
    is_async: bool


def read_handler(
    kind: str, function: Callable[..., Any], *, run_type: type, locals: Mapping[str, Any] | None = None
) -> Handler:
    """Read how a handler is to be called, and with what.

    Only the annotations of the first two parameters are evaluated, each by itself, with the names that are known
    where the function was written.

    Args:
        kind: The kind's name, for messages.
        function: A function, a bound method, a callable object, or a partial or wrapper of one; `def` or `async def`.
        run_type: The type that a second parameter is annotated with to be given the run.
        locals: More names for the annotations, such as those of the function that registers. Default None: no more.

    Raises:
        KindError: It cannot be called with a value of a known type; the message names the parameter and the remedy.

    Example:
        >>> class Run: ...
        >>> async def add(value: list[int], run: Run) -> None: ...
        >>> handler = read_handler("add", add, run_type=Run)
        >>> handler.value_type, handler.takes_run, handler.is_async
        (list[int], True, True)
    """
    reading = _Reading(kind, function, dict(locals or {}))
    is_async = reading.is_async()
    first, *rest = reading.parameters()
    value_type = reading.evaluate(first)
    if _allows(value_type, run_type):
        raise reading.refusal(f"takes the run as {first.name!r}, its first parameter; put the value before it")
    takes_run = bool(rest) and reading.may_take_run(rest[0]) and _allows(reading.evaluate(rest[0]), run_type)
    for parameter in rest[takes_run:]:
        reading.check_needless(parameter)
    return Handler(function, value_type, takes_run, is_async)


@dataclass(frozen=True, slots=True)
class _Reading:
    """One handler while it is read: the questions to its signature, and the refusals."""

    kind: str
    function: Any
    locals: dict[str, Any]

    def refusal(self, reason: str) -> KindError:
        written = _written(self.function)
        name = getattr(written, "__qualname__", None) or repr(written)
        return KindError(f"kind {self.kind!r}: {name} {reason}")

    def is_async(self) -> bool:
        """Whether a call answers a coroutine, once it is seen that a call does something."""
        if not callable(self.function):
            raise self.refusal("cannot be called; give a function of the value")
        if isinstance(self.function, type):
            raise self.refusal("is a class, and making an object does no job; give a function of the value")
        called = _called(self.function)
        if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
            raise self.refusal("has a yield, so that a call of it runs nothing; write it without")
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(called)

    def parameters(self) -> list[Parameter]:
        """The parameters, the first of which can take the value and says of what type it is."""
        try:
            parameters = list(inspect.signature(self.function).parameters.values())
        except Exception as error:
            raise self.refusal(f"has no signature that can be read ({error}); wrap it in a function") from error
        if not parameters:
            raise self.refusal(
                "takes no parameter; give it one for the value, annotated with its type, which may be None"
            )
        first = parameters[0]
        if first.kind not in _BY_POSITION:
            raise self.refusal(
                f"cannot take the value by position, since its first parameter is {first.name!r}; "
                "write one for the value before it, or put functools.wraps on the wrapper"
            )
        if first.annotation is Parameter.empty:
            raise self.refusal(f"does not say the type of {first.name!r}, its value; {_remedy(first.name)}")
        return parameters

    def evaluate(self, parameter: Parameter) -> Any:
        """The annotation of one parameter; `get_type_hints` on the function would evaluate those nobody needs too."""
        holder = SimpleNamespace(__annotations__={"one": parameter.annotation})
        names = getattr(_written(self.function), "__globals__", {})
        try:
            return get_type_hints(holder, names, self.locals, include_extras=True)["one"]
        except NameError as error:
            raise self.refusal(
                f"annotates {parameter.name!r} with {error.name!r}, a name that is not known at run time; "
                "import it outside `if TYPE_CHECKING:`, or define it at the top of its module"
            ) from error
        except Exception as error:
            raise self.refusal(
                f"annotates {parameter.name!r} with what cannot be evaluated: {type(error).__name__}: {error}"
            ) from error

    def may_take_run(self, parameter: Parameter) -> bool:
        return parameter.kind in _BY_POSITION and parameter.annotation is not Parameter.empty

    def check_needless(self, parameter: Parameter) -> None:
        """See that the handler can be called without a parameter."""
        if parameter.default is Parameter.empty and parameter.kind not in _NEEDS_NOTHING:
            raise self.refusal(
                f"needs {parameter.name!r}, and is called with the value, and with the run if its second parameter is "
                "annotated Run; give it a default, or bind it with functools.partial"
            )


def _remedy(name: str) -> str:
    return "give the method of an object" if name in {"self", "cls"} else f"annotate it: {name}: TheType"


def _allows(annotation: Any, run_type: type) -> bool:
    """Whether an annotation is the run, or a union with it."""
    if get_origin(annotation) in (Annotated, Union, UnionType):
        return any(_allows(part, run_type) for part in get_args(annotation))
    return annotation is run_type


def _called(function: Any) -> Any:
    """What runs when a callable is called: partials and objects only hand on."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isfunction(function) or inspect.ismethod(function) else type(function).__call__


def _written(function: Any) -> Any:
    """What the annotations were written on, behind wrappers, partials, methods and callable objects."""
    for _ in range(_LAYERS):
        if hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        elif callable(function) and inspect.isfunction(type(function).__call__):
            function = type(function).__call__
        else:
            break
    return function

"""What a handler's signature tells, and each way in which it cannot be read."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import FrozenInstanceError, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, NamedTuple, Optional, TypeVar, Union

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from fastqueue.codec import Codec
from fastqueue.errors import KindError
from fastqueue.signature import Handler, read_handler

if TYPE_CHECKING:
    from decimal import Decimal as Unknown

T = TypeVar("T")
Positive = Annotated[int, Field(gt=0)]


DATABASE: Any = "database"


class Run:
    pass


class Mail(BaseModel):
    user: int


@dataclass
class Point:
    x: int


class Options(TypedDict):
    width: int


class Pair(NamedTuple):
    first: int


class Box(BaseModel, Generic[T]):
    content: T


def read(function: Any, names: Mapping[str, Any] | None = None) -> Handler:
    return read_handler("mail", function, run_type=Run, locals=names)


def refusal(function: Any, names: Mapping[str, Any] | None = None) -> str:
    """What the refusal of a handler says, without the name of the kind."""
    with pytest.raises(KindError) as caught:
        read(function, names)
    start = "kind 'mail': "
    assert str(caught.value).startswith(start)
    return str(caught.value).removeprefix(start).removeprefix("test_").replace("<locals>.", "")


def plain(value: Mail) -> None: ...


async def awaited(value: Mail) -> None: ...


def plain_with_run(value: Mail, run: Run) -> None: ...


async def awaited_with_run(value: Mail, run: Run) -> None: ...


async def with_more(
    value: Mail, run: Run, tries: int = 3, *rest: Unknown, flag: Unknown | None = None, **more: int
) -> None: ...


class Service:
    async def send(self, value: Mail, run: Run) -> None: ...

    def note(self, value: Mail) -> None: ...

    @classmethod
    async def build(cls, value: Mail) -> None: ...

    @staticmethod
    def fixed(value: Mail) -> None: ...


class Called:
    async def __call__(self, value: Mail, run: Run) -> None: ...


class CalledPlainly:
    def __call__(self, value: Mail) -> None: ...


def configured(database: Unknown, value: Mail, run: Run) -> None: ...


async def configured_later(value: Mail, *, database: Unknown) -> None: ...


def logged(function: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @functools.wraps(function)
    async def wrapper(*args: object, **named: object) -> None:
        await function(*args, **named)

    return wrapper


def timed(function: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(function)
    def wrapper(*args: object, **named: object) -> None:
        function(*args, **named)

    return wrapper


@pytest.mark.parametrize(
    ("function", "takes_run", "is_async"),
    [
        (plain, False, False),
        (awaited, False, True),
        (plain_with_run, True, False),
        (awaited_with_run, True, True),
        (with_more, True, True),
        (Service().send, True, True),
        (Service().note, False, False),
        (Service.build, False, True),
        (Service.fixed, False, False),
        (Called(), True, True),
        (CalledPlainly(), False, False),
        (functools.partial(configured, DATABASE), True, False),
        (functools.partial(configured_later, database=DATABASE), False, True),
        (functools.partial(Called()), True, True),
        (functools.partial(functools.partial(Service.send, Service())), True, True),
        (logged(awaited_with_run), True, True),
        (timed(plain), False, False),
        (logged(logged(Called().__call__)), True, True),
        (timed(functools.partial(configured, DATABASE)), True, False),
        (functools.partial(timed(configured), DATABASE), True, False),
    ],
)
def test_a_handler_is_read_as_it_is_to_be_called(function: Any, takes_run: bool, is_async: bool) -> None:
    assert read(function) == Handler(function, Mail, takes_run, is_async)


def test_a_handler_is_a_value() -> None:
    with pytest.raises(FrozenInstanceError):
        read(plain).takes_run = True  # type: ignore[misc]


def model(value: Mail) -> None: ...


def some_dataclass(value: Point) -> None: ...


def typed_dict(value: Options) -> None: ...


def named_tuple(value: Pair) -> None: ...


def generic_model(value: Box[int]) -> None: ...


def optional(value: Optional[Mail]) -> None: ...  # noqa: UP045


def either(value: Mail | Point) -> None: ...


def a_list(value: list[Mail]) -> None: ...


def quoted_within(value: list["Mail"]) -> None: ...  # noqa: UP037


def constrained(value: Positive) -> None: ...


def nothing(value: None) -> None: ...


def with_default(value: int = 3) -> None: ...


def only_by_position(value: int, /) -> None: ...


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (model, Mail),
        (some_dataclass, Point),
        (typed_dict, Options),
        (named_tuple, Pair),
        (generic_model, Box[int]),
        (optional, Mail | None),
        (either, Mail | Point),
        (a_list, list[Mail]),
        (quoted_within, list[Mail]),
        (constrained, Positive),
        (nothing, type(None)),
        (with_default, int),
        (only_by_position, int),
    ],
)
def test_the_type_of_the_value_is_the_annotation_evaluated(function: Any, expected: Any) -> None:
    value_type = read(function).value_type
    assert value_type == expected
    assert Codec[Any]("mail", value_type)


def optional_run(value: Mail, run: Run | None = None) -> None: ...


def old_optional_run(value: Mail, run: Union[Run, None] = None) -> None: ...  # noqa: UP007


def annotated_run(value: Mail, run: Annotated[Run, "of this attempt"]) -> None: ...


@pytest.mark.parametrize("function", [optional_run, old_optional_run, annotated_run])
def test_a_run_that_may_be_none_is_given_too(function: Any) -> None:
    assert read(function).takes_run


def list_of_runs(value: Mail, runs: list[Run] = []) -> None: ...  # noqa: B006


def no_annotation(value: Mail, run=None) -> None: ...  # type: ignore[no-untyped-def]  # pyright: ignore


def run_by_name(value: Mail, *, run: Run | None = None) -> None: ...


def run_third(value: Mail, tries: int = 3, run: Run | None = None) -> None: ...


@pytest.mark.parametrize("function", [list_of_runs, no_annotation, run_by_name, run_third])
def test_only_a_second_parameter_annotated_as_the_run_is_given_it(function: Any) -> None:
    assert not read(function).takes_run


def test_a_wrapper_says_whether_the_call_is_awaited_and_what_it_wraps_says_the_type() -> None:
    @functools.wraps(awaited)
    def hand_on(*args: Any) -> Any:
        return awaited(*args)

    assert read(hand_on) == Handler(hand_on, Mail, takes_run=False, is_async=False)


# Where names are known


def test_a_model_of_the_registering_function_is_known_by_its_names() -> None:
    class Local(BaseModel):
        user: int

    def handler(value: list[Local], run: Run) -> None: ...

    assert read(handler, locals()).value_type == list[Local]
    assert refusal(handler).endswith(
        "handler annotates 'value' with 'Local', a name that is not known at run time; "
        "import it outside `if TYPE_CHECKING:`, or define it at the top of its module"
    )


def test_names_are_those_of_the_module_where_the_function_was_written() -> None:
    module = types.ModuleType("elsewhere")
    code = "from __future__ import annotations\nclass Mail: ...\ndef handler(value: Mail) -> None: ..."
    exec(code, module.__dict__)
    wrapped = timed(module.handler)
    assert wrapped.__globals__ is not module.__dict__
    assert read(wrapped).value_type is module.Mail
    assert read(functools.partial(wrapped)).value_type is module.Mail


def test_names_that_are_given_go_before_those_of_the_module() -> None:
    assert read(plain, {"Mail": Point}).value_type is Point


def test_annotations_that_are_not_texts_are_taken_as_they_are() -> None:
    def handler(value: Any) -> None: ...

    handler.__annotations__["value"] = Point
    assert read(handler).value_type is Point


def returns_unknown(value: Mail) -> Unknown | None: ...


def test_annotations_that_nobody_needs_are_not_evaluated() -> None:
    assert read(returns_unknown).value_type is Mail
    assert read(with_more).takes_run


# Refusals


def no_parameter() -> None: ...


def star(*values: Mail) -> None: ...


def by_name(*, value: Mail) -> None: ...


def bare(value) -> None: ...  # type: ignore[no-untyped-def]  # pyright: ignore


def unknown(value: Unknown) -> None: ...


def unknown_inside(value: list[Unknown]) -> None: ...


def unknown_second(value: Mail, run: Unknown) -> None: ...


def unknown_second_with_default(value: Mail, run: Unknown | None = None) -> None: ...


def broken(value: sys.nothing) -> None: ...  # type: ignore[name-defined]  # pyright: ignore


def two_values(value: Mail, other: Mail) -> None: ...


def bare_second(value: Mail, run) -> None: ...  # type: ignore[no-untyped-def]  # pyright: ignore


def three(value: Mail, run: Run, other: int) -> None: ...


def run_only_by_name(value: Mail, *, run: Run) -> None: ...


def run_first(run: Run, value: Mail) -> None: ...


def optional_run_first(run: Run | None) -> None: ...


def yielding(value: Mail) -> Iterator[None]:
    yield


async def yielding_later(value: Mail) -> AsyncIterator[None]:
    yield


class Yielding:
    def __call__(self, value: Mail) -> Iterator[None]:
        yield


NOT_KNOWN = (
    "'Unknown', a name that is not known at run time; import it outside `if TYPE_CHECKING:`, "
    "or define it at the top of its module"
)
NEEDS_MORE = (
    "and is called with the value, and with the run if its second parameter is annotated Run; "
    "give it a default, or bind it with functools.partial"
)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (
            no_parameter,
            "no_parameter takes no parameter; give it one for the value, annotated with its type, which may be None",
        ),
        (
            star,
            "star cannot take the value by position, since its first parameter is 'values'; "
            "write one for the value before it, or put functools.wraps on the wrapper",
        ),
        (
            by_name,
            "by_name cannot take the value by position, since its first parameter is 'value'; "
            "write one for the value before it, or put functools.wraps on the wrapper",
        ),
        (bare, "bare does not say the type of 'value', its value; annotate it: value: TheType"),
        (
            Service.send,
            "Service.send does not say the type of 'self', its value; give the method of an object",
        ),
        (unknown, f"unknown annotates 'value' with {NOT_KNOWN}"),
        (unknown_inside, f"unknown_inside annotates 'value' with {NOT_KNOWN}"),
        (unknown_second, f"unknown_second annotates 'run' with {NOT_KNOWN}"),
        (unknown_second_with_default, f"unknown_second_with_default annotates 'run' with {NOT_KNOWN}"),
        (
            broken,
            "broken annotates 'value' with what cannot be evaluated: AttributeError: "
            "module 'sys' has no attribute 'nothing'",
        ),
        (two_values, f"two_values needs 'other', {NEEDS_MORE}"),
        (bare_second, f"bare_second needs 'run', {NEEDS_MORE}"),
        (three, f"three needs 'other', {NEEDS_MORE}"),
        (run_only_by_name, f"run_only_by_name needs 'run', {NEEDS_MORE}"),
        (configured_later, f"configured_later needs 'database', {NEEDS_MORE}"),
        (run_first, "run_first takes the run as 'run', its first parameter; put the value before it"),
        (optional_run_first, "optional_run_first takes the run as 'run', its first parameter; put the value before it"),
        (yielding, "yielding has a yield, so that a call of it runs nothing; write it without"),
        (yielding_later, "yielding_later has a yield, so that a call of it runs nothing; write it without"),
        (Yielding(), "Yielding.__call__ has a yield, so that a call of it runs nothing; write it without"),
        (functools.partial(yielding), "yielding has a yield, so that a call of it runs nothing; write it without"),
        (Mail, "Mail is a class, and making an object does no job; give a function of the value"),
        (3, "3 cannot be called; give a function of the value"),
        ("verify-mail", "'verify-mail' cannot be called; give a function of the value"),
        (None, "None cannot be called; give a function of the value"),
    ],
)
def test_a_handler_that_cannot_be_read_is_refused_with_its_own_remedy(function: Any, said: str) -> None:
    assert refusal(function) == said


def test_a_callable_without_a_signature_is_refused() -> None:
    assert refusal(print).startswith("print cannot take the value by position")
    too_many: Any = (1, 2, 3)
    said = refusal(functools.partial(plain, *too_many))
    assert said.startswith("plain has no signature that can be read (")
    assert said.endswith("; wrap it in a function")


class Endless:
    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, value: Mail) -> None: ...


def test_an_object_that_answers_to_every_name_does_not_hold_up_registration() -> None:
    assert "has no signature that can be read" in refusal(Endless())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.12 brought marks for coroutine functions")
def test_a_function_marked_as_a_coroutine_function_is_awaited() -> None:
    class Marked:
        def __call__(self, value: Mail) -> Awaitable[None]:
            return awaited(value)

    mark: Any = vars(inspect)["markcoroutinefunction"]
    assert read(mark(Marked())).is_async

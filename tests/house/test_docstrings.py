"""Every public name says what it is, what each argument is, and how it is used."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

import fastqueue
from fastqueue import errors
from fastqueue.testing import StoreContract

MODULES = (
    "fastqueue",
    "fastqueue.environ",
    "fastqueue.errors",
    "fastqueue.events",
    "fastqueue.failures",
    "fastqueue.fastapi",
    "fastqueue.mail",
    "fastqueue.move",
    "fastqueue.otel",
    "fastqueue.prometheus",
    "fastqueue.starlette",
    "fastqueue.testing",
)
"""What an app imports from."""

PUBLIC: dict[str, Any] = {
    f"{module}.{name}": getattr(import_module(module), name)
    for module in MODULES
    for name in import_module(module).__all__
}
CODE = {name: what for name, what in PUBLIC.items() if inspect.isclass(what) or inspect.isfunction(what)}


ANSWERS = {
    *("Changed", "Group", "Health", "Jobs", "Later", "Moved", "Outcome"),
    *("Publishing", "Pushed", "Ran", "Report", "Run", "StoredJob"),
}
"""Nobody makes one: what answers them has the example, and their fields are attributes."""


def is_made(name: str) -> bool:
    return name.rpartition(".")[2] not in ANSWERS and not is_error(CODE[name])


def methods(of: type) -> Iterator[tuple[str, Any]]:
    for each in of.__mro__:
        if each.__module__.startswith("fastqueue"):
            for name, method in vars(each).items():
                if inspect.isfunction(method) and not name.startswith("_") and "Args:" in (method.__doc__ or ""):
                    yield f"{each.__module__}.{each.__name__}.{name}", method


METHODS = {name: method for what in CODE.values() if inspect.isclass(what) for name, method in methods(what)}


def unnamed(of: Any) -> list[str]:
    """The parameters that a docstring does not tell of."""
    told = re.findall(r"^ +((?:\w+, )*\w+): ", of.__doc__ or "", re.MULTILINE)
    words = {word for names in told for word in names.split(", ")} | {"self", "cls"}
    return [name for name in inspect.signature(of).parameters if name not in words]


def is_derived_from(what: Any) -> bool:
    """Whether a user writes a class like it, or is given one, and never calls the class itself."""
    return getattr(what, "_is_protocol", False) or inspect.isabstract(what) or what in (fastqueue.Kind, StoreContract)


def is_error(what: Any) -> bool:
    return inspect.isclass(what) and issubclass(what, Exception)


@pytest.mark.parametrize("name", sorted(CODE))
def test_a_public_name_has_a_docstring_of_its_own(name: str) -> None:
    assert vars(CODE[name])["__doc__"] if inspect.isclass(CODE[name]) else CODE[name].__doc__


@pytest.mark.parametrize("name", sorted(filter(is_made, CODE)))
def test_what_a_user_calls_has_an_example(name: str) -> None:
    assert re.search(r"^ +(>>> |```python)", CODE[name].__doc__ or "", re.MULTILINE)


@pytest.mark.parametrize("name", sorted(name for name in CODE if is_made(name) and not is_derived_from(CODE[name])))
def test_what_a_user_calls_tells_of_each_argument(name: str) -> None:
    assert not unnamed(CODE[name])


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_method_that_tells_of_its_arguments_tells_of_each(name: str) -> None:
    """`options` is spelled out by the overloads, and by the docstring one by one."""
    assert set(unnamed(METHODS[name])) <= {"options"}


def raised(by: Callable[..., Any]) -> set[str]:
    """The errors of fastqueue that a function raises by their names."""
    named = [node.exc for node in ast.walk(source(by)) if isinstance(node, ast.Raise)]
    called = [error.func if isinstance(error, ast.Call) else error for error in named]
    return {error.id for error in called if isinstance(error, ast.Name) and error.id in errors.__all__}


def source(of: Callable[..., Any]) -> ast.Module:
    return ast.parse(textwrap.dedent(inspect.getsource(of)))


def helpers(of: Callable[..., Any], owner: type | None) -> Iterator[Callable[..., Any]]:
    """The functions of its own class and module that it calls."""
    for node in ast.walk(source(of)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name)):
                found = inspect.getattr_static(owner, name, None)
            case ast.Call(func=ast.Name(id=name)):
                found = vars(sys.modules[of.__module__]).get(name)
            case _:
                continue
        if inspect.isfunction(found := getattr(found, "__func__", found)):
            yield found


def made_by() -> Iterator[tuple[str, Callable[..., Any], type | None, str]]:
    """What a user calls: its name, its code, its class, and what its docstring says."""
    for name in filter(is_made, CODE):
        what = CODE[name]
        if inspect.isfunction(what):
            yield name, what, None, what.__doc__ or ""
        elif not is_derived_from(what):
            for maker in ("__init__", "__post_init__"):
                code = vars(what).get(maker)
                if inspect.isfunction(code) and code.__code__.co_filename == inspect.getsourcefile(what):
                    yield name, code, what, what.__doc__ or ""
    for what in filter(inspect.isclass, CODE.values()):
        yield from ((name, method, what, method.__doc__ or "") for name, method in methods(what))


RAISING = sorted(made_by(), key=lambda each: each[0])


@pytest.mark.parametrize(("name", "code", "owner", "told"), RAISING, ids=[name for name, *_ in RAISING])
def test_what_a_user_calls_tells_of_the_errors_that_it_raises(
    name: str, code: Callable[..., Any], owner: type | None, told: str
) -> None:
    all_raised = raised(code).union(*(raised(helper) for helper in helpers(code, owner)))
    assert sorted(error for error in all_raised if error not in told) == [], name

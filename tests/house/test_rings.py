"""Imports run one way: values ← the port ← stores ← the road ← the root ← edges. There are no exceptions.

An import inside a function or under TYPE_CHECKING counts like any other: what a reader has to follow is the same.
Inside a ring, modules may name each other's types, but what they import to run goes round in no circle.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import fastqueue

PACKAGE = Path(fastqueue.__file__).parent


class Ring(NamedTuple):
    """Modules and packages that may import each other and those of the rings before theirs.

    Attributes:
        rooms: Their names, the first after `fastqueue.`; the package itself is its own room.
        third_party: The packages that they may import besides; None: any.
    """

    name: str
    rooms: str
    third_party: str | None = ""


RINGS = (
    Ring(
        "values",
        "errors job outcome finding clock settings codec _losses signature carriers options pushing kind kinds"
        " backoff schedule _cron _zones unique limits",
        third_party="pydantic pydantic_core typing_extensions",
    ),
    Ring("the port", "joins moves store"),
    Ring("stores", "stores", third_party="asyncpg asyncmy redis hiredis"),
    Ring(
        "the road",
        "queue asked push transaction inline home coalesce failures move health worker",
        third_party="anyio typing_extensions",
    ),
    Ring("the root", "fastqueue"),
    Ring("edges", "environ prometheus starlette fastapi otel mail events cli testing", third_party=None),
)


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
each_module = pytest.mark.parametrize("module", FILES)


def statements(module: str, *, typing: bool) -> Iterator[ast.AST]:
    """Everything in a module, with or without what only a type checker reads."""
    waiting: list[ast.AST] = [ast.parse(FILES[module].read_text())]
    while waiting:
        node = waiting.pop()
        yield node
        if typing or not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            waiting += ast.iter_child_nodes(node)


def imports(module: str, *, typing: bool = True) -> Iterator[str]:
    """The modules that a module imports, anywhere in it; names inside them are left off."""
    for node in statements(module, typing=typing):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} line {node.lineno}: write the import in full, from fastqueue on"
            assert node.module
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in FILES else node.module


def own_imports(module: str, *, typing: bool = True) -> set[str]:
    return {name for name in imports(module, typing=typing) if name.split(".")[0] == "fastqueue"}


def third_party_imports(module: str) -> set[str]:
    tops = {name.split(".")[0] for name in imports(module)}
    return tops - sys.stdlib_module_names - {"fastqueue"}


def ring_of(module: str) -> int:
    room = module.removeprefix("fastqueue.").split(".")[0]
    found = [place for place, ring in enumerate(RINGS) if room in ring.rooms.split()]
    assert found, f"fastqueue/{room} is in no ring: place it in RINGS of {Path(__file__).name}"
    return found[0]


@each_module
def test_a_module_imports_only_from_its_own_ring_and_those_before(module: str) -> None:
    ring = ring_of(module)
    outward = {name for name in own_imports(module) if ring_of(name) > ring}
    assert not outward, f"{module} ({RINGS[ring].name}) imports from a later ring: {', '.join(sorted(outward))}"


@each_module
def test_a_module_imports_only_the_packages_of_its_ring(module: str) -> None:
    ring = RINGS[ring_of(module)]
    if ring.third_party is not None:
        assert third_party_imports(module) <= set(ring.third_party.split())


@pytest.mark.parametrize("module", [name for name in FILES if name.startswith("fastqueue.stores")])
def test_a_store_module_knows_one_driver_at_most(module: str) -> None:
    assert len(third_party_imports(module) - {"hiredis"}) <= 1  # which is redis's own, in C


def test_modules_import_each_other_in_no_circle() -> None:
    graph = {module: own_imports(module, typing=False) - {module} for module in FILES}
    assert list(TopologicalSorter(graph).static_order())


def test_importing_fastqueue_loads_no_package_of_an_extra() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import fastqueue, sys; print(*sys.modules)"], check=True, capture_output=True, text=True
    ).stdout.split()
    extras = {
        "aiosmtplib",
        "asyncmy",
        "asyncpg",
        "cryptography",
        "fastapi",
        "opentelemetry",
        "prometheus_client",
        "redis",
        "rich",
        "starlette",
        "typer",
    }
    assert extras.isdisjoint(loaded)

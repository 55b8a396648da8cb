"""The kit as a base class of pytest tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, ClassVar

import pytest

from fastqueue.testing.conformance.clause import Way, marks
from fastqueue.testing.conformance.clauses import AllClauses
from fastqueue.testing.conformance.stage import Begin, MakeStore, Stage

__all__ = ["StoreContract"]

_MARKERS = {
    "long": "the long form of a check that also has a short one; runs only when -m asks for it",
    "processes": "starts processes of its own",
}


class StoreContract(AllClauses):
    """Every clause of the store contract as a test: see `fastqueue.testing.conformance` for how to use it.

    Attributes:
        processes: Whether the factory that `make_store` gives can be pickled and makes, in another process, a store on
            the same jobs; the races are then run from several processes too.

    Example:
        ```python
        class TestMyStore(StoreContract):
            @pytest.fixture
            def make_store(self, tmp_path) -> MakeStore:
                return lambda: MyStore(tmp_path / "jobs")
        ```
    """

    processes: ClassVar[bool] = False

    @pytest.fixture
    def make_store(self) -> MakeStore:
        """A factory of store objects on one new, empty database: yours to write."""
        pytest.fail(f"{type(self).__name__} needs a fixture make_store that gives a factory of stores")

    @pytest.fixture
    def begin(self) -> Begin | None:
        """What begins a transaction of the app's on that database; None: the store joins none."""
        return None

    @pytest.fixture
    async def on(
        self, request: pytest.FixtureRequest, make_store: MakeStore, begin: Begin | None
    ) -> AsyncIterator[Stage]:
        """The stage on which a clause is played."""
        stage = Stage(make_store, way=getattr(request, "param", "tasks"), begin=begin)
        reason = stage.lacking(request.function)
        if reason is not None:
            pytest.skip(reason)
        async with stage.opened():
            yield stage

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run each clause in the ways it has."""
        asked: set[Way] = {"tasks", "short"}
        if self.processes:
            asked.add("processes")
        if "long" in (metafunc.config.getoption("markexpr") or ""):
            asked.add("long")
        ways: list[Way] = [way for way in marks(metafunc.function).ways if way in asked]
        if ways:
            metafunc.parametrize("on", [_way(way, metafunc.config) for way in ways], indirect=True)


def _way(way: Way, config: pytest.Config) -> Any:
    """A way as a parameter, with the marker by which it can be chosen; it is made known where it is not."""
    if way not in _MARKERS:
        return pytest.param(way)
    if not any(line.partition(":")[0] == way for line in config.getini("markers")):
        config.addinivalue_line("markers", f"{way}: {_MARKERS[way]}")
    return pytest.param(way, marks=getattr(pytest.mark, way))

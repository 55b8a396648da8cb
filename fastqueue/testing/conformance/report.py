"""The kit without pytest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fastqueue.testing.conformance.clause import Way, clause_id, marks
from fastqueue.testing.conformance.clauses import AllClauses
from fastqueue.testing.conformance.stage import Begin, MakeStore, Stage

__all__ = ["Fresh", "Report", "exercise"]

Fresh: TypeAlias = Callable[[], AbstractAsyncContextManager[MakeStore]]
"""Makes a new, empty database and gives a factory of store objects on it; leaving removes it."""

_Check: TypeAlias = Callable[[Stage], Awaitable[None]]


@dataclass(slots=True)
class Report:
    """What a store passed, what it failed and what it was not asked.

    Attributes:
        passed: The names of the checks it passed; each begins with the number of its clause.
        failed: The names of those it failed, with what was raised.
        skipped: The names of those it was not asked, with the reason.
    """

    passed: list[str] = field(default_factory=list)
    failed: dict[str, Exception] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def broken(self) -> set[str]:
        """The clauses that the store broke, such as "B7"."""
        return {clause_id(name.partition("[")[0]) for name in self.failed}

    def __str__(self) -> str:
        lines = [f"{len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"]
        lines += [f"FAILED {name}: {type(error).__name__}: {error}" for name, error in self.failed.items()]
        lines += [f"SKIPPED {name}: {reason}" for name, reason in self.skipped.items()]
        return "\n".join(lines)


async def exercise(
    fresh: Fresh,
    *,
    only: str = "",
    processes: bool = False,
    long: bool = False,
    begin: Begin | None = None,
) -> Report:
    """Ask a store for every promise of the contract.

    Args:
        fresh: Called for each check. It makes a new, empty database, as an async context manager that gives a factory
            of store objects on it; leaving removes the database.
        only: Part of the names of the checks to run, such as "b7" or "g13"; the default is all.
        processes: Whether the factory can be pickled, so that the races are run from several processes too.
        long: Whether the random tests run in their long form instead of the short one; a few minutes.
        begin: Begins a transaction on a connection of your own, for a store that can join it.

    Returns:
        What passed, failed and was skipped. A check that fails stops none of the others.

    Raises:
        RuntimeError: Python runs with -O, which would take the checks out of the kit.

    Example:
        >>> import asyncio
        >>> from contextlib import asynccontextmanager
        >>> from fastqueue.stores.memory import MemoryStore
        >>> @asynccontextmanager
        ... async def fresh():
        ...     yield MemoryStore().again
        >>> report = asyncio.run(exercise(fresh, only="b6"))
        >>> report.failed
        {}
    """
    if not __debug__:
        raise RuntimeError("the conformance kit checks by assert; run Python without -O")
    report = Report()
    wanted: set[Way] = {"tasks", "long" if long else "short"}
    if processes:
        wanted.add("processes")
    for name in dir(AllClauses):
        if name.startswith("test_") and only in name:
            ways = marks(getattr(AllClauses, name)).ways or (None,)
            for way in ways:
                if way is None or way in wanted:
                    await _run(report, name, way, fresh, begin)
    return report


async def _run(report: Report, name: str, way: Way | None, fresh: Fresh, begin: Begin | None) -> None:
    check: Any = getattr(AllClauses(), name)
    title = f"{name}[{way}]" if way else name
    try:
        async with fresh() as make:
            stage = Stage(make, way=way or "tasks", begin=begin)
            reason = stage.lacking(check)
            if reason is not None:
                report.skipped[title] = reason
                return
            async with stage.opened():
                await check(stage)
    except Exception as error:
        report.failed[title] = error
    else:
        report.passed.append(title)

"""The conformance kit finds bugs: each planted one, by the clause that it breaks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import MakeStore, exercise
from tests.testing.planted import BUGS

WITHOUT_A_RACE = {
    bug for bug, (_, clauses) in BUGS.items() if not {"B7", "A5", "U4", "S4", "T4"}.intersection(clauses)
} - {"SettlesWhatItSawHeld"}

NOT_IN_A_HISTORY = {
    "APageBeginsAfterItsMoment",
    "APortionArrivesAgain",
    "AnyPortionHasLeft",
    "EachObjectHasItsOwnJobs",
    "ErrorsAreComparedWithoutCapitals",
    "HearsOnlyOfItsOwnZoneData",
    "JobsArriveWithNewIds",
    "KeysIgnoreCase",
    "LooksAtTheFirstHundred",
    "PushesOneByOne",
    "RecordsARunBeforeItsJob",
    "RewritesPayloads",
    "RunsAreRecordedBackwards",
    "TakesAnotherPortionMeanwhile",
    "TheErrorStays",
    "WhatLeavesIsStillInItsLane",
}
"""What takes more than one store object, other letters, more jobs, a choice of them, a move or a failure."""


def fresh(make: Callable[[], MemoryStore]) -> Callable[[], AbstractAsyncContextManager[MakeStore]]:
    @asynccontextmanager
    async def database() -> AsyncGenerator[MakeStore]:
        yield make().again

    return database


async def test_the_correct_store_passes_all() -> None:
    report = await exercise(fresh(MemoryStore))
    assert report.failed == {}
    assert len(report.passed) > 100


@pytest.mark.parametrize(
    ("bug", "clause"), [(bug, clause) for bug, (_, found_by) in BUGS.items() for clause in found_by]
)
async def test_a_planted_bug_is_found_by_its_clause(bug: str, clause: str) -> None:
    report = await exercise(fresh(BUGS[bug][0]), only="test_" + clause.lower().replace(" ", "_"))
    assert clause in report.broken, report


@pytest.mark.parametrize("bug", sorted(WITHOUT_A_RACE - NOT_IN_A_HISTORY))
async def test_a_planted_bug_is_found_by_random_histories(bug: str) -> None:
    report = await exercise(fresh(BUGS[bug][0]), only="random_history")
    assert len(report.failed) == 1, report


@pytest.mark.parametrize("bug", ["CountsBeforeTheLock", "HoldNeverEnds", "LimitIsIgnored", "TakesWhatItSawFree"])
async def test_a_planted_bug_is_found_by_the_stress(bug: str) -> None:
    report = await exercise(fresh(BUGS[bug][0]), only="stress")
    assert len(report.failed) == 2, report

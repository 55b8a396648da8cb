from __future__ import annotations

import re

import pytest

from fastqueue.job import Claimed, NewJob, StoredJob
from fastqueue.stores._migrations import load
from fastqueue.stores._rows import CLAIMED, NEVER, NEW_JOB, STORED, claimed, new_job_values, stored
from fastqueue.stores._sql import Tables
from fastqueue.stores._sql_moves import MOVED

VALUES = {
    "id": 1,
    "kind": "k",
    "queue": "q",
    "payload": "{}",
    "run_at": 2,
    "held_until": 3,
    "hold_ms": 4,
    "attempts": 5,
    "interruptions": 6,
    "options": "o",
    "unique_key": "u",
    "alone_key": "a",
    "carried": "c",
    "schedule": "s",
    "error": "e",
}


@pytest.mark.parametrize(("mode", "at_once"), [(0, 0), (1, 0), (6, 3), (7, 3)])
@pytest.mark.parametrize("lost", [0, 1])
def test_a_claimed_row_is_a_claimed_job(mode: int, at_once: int, lost: int) -> None:
    row = [(VALUES | {"mode": mode, "lost": lost})[column] for column in CLAIMED]
    job = claimed(row, 7)
    assert job == Claimed(**VALUES, token=7, at_once=at_once, lost=lost == 1)  # type: ignore[arg-type]
    assert job.lost is (lost == 1)
    assert None not in job


def test_a_row_that_is_too_short_is_an_error() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        claimed((1, 2), 7)


@pytest.mark.parametrize(("held_until", "held_ms"), [(3, 3), (NEVER, None)])
@pytest.mark.parametrize("failed_at", [None, 8])
def test_a_stored_row_is_a_stored_job(held_until: int, held_ms: int | None, failed_at: int | None) -> None:
    values = VALUES | {"mode": 5, "held_until": held_until, "failed_at": failed_at}
    assert stored([values[column] for column in STORED]) == StoredJob(
        id=1,
        kind="k",
        queue="q",
        payload="{}",
        run_ms=2,
        attempts=5,
        held_ms=held_ms,
        failed_ms=failed_at,
        error="e",
        options="o",
        unique_key="u",
        alone_key="a",
        at_once=2,
        carried_text="c",
        schedule="s",
    )


def test_a_new_job_is_written_in_the_order_of_the_columns() -> None:
    job = NewJob(kind="k", payload="{}", run_at=5, at_once=2, alone_key="a", unique_key="u", latest=True)
    values = new_job_values(job, 3)
    assert tuple(values) == NEW_JOB
    assert (values["mode"], values["part"], values["run_at"], values["due"], values["created_at"]) == (5, "", 5, 5, 3)
    assert (values["unique_key"], values["alone_key"]) == ("u", "a")


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mysql"])
def test_a_job_moves_with_every_column_but_those_of_its_claim(dialect: str) -> None:
    made = "".join(text for each in load(dialect, Tables()) for text in each.statements if "_jobs" in text)
    table = made[made.index("CREATE TABLE") :]
    columns = set(re.findall(r"^    ([a-z_]+) [a-zA-Z]", table[: table.index("\n)")], re.MULTILINE))

    assert columns == {*MOVED, "due", "held_until", "token"}

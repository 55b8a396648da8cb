"""All jobs of one store to another by the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastqueue.job import NewJob
from fastqueue.stores import store_of
from tests.cli.command import NOW, Command, on_a_terminal, push, push_failed


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("sqlite_url", "postgres_url"),
        ("postgres_url", "mysql_url"),
        ("mysql_url", "redis_url"),
        ("redis_url", "sqlite_url"),
    ],
)
async def test_jobs_are_moved_from_one_store_to_another(
    source: str, target: str, request: pytest.FixtureRequest
) -> None:
    old, new = request.getfixturevalue(source), request.getfixturevalue(target)
    before, after = Command(old), Command(new)
    await push_failed(old, "no mailbox")
    await push(old, *[NewJob(kind="greet", payload='"Ada"', run_at=NOW)] * 3)
    listed = before("jobs", "--json").out

    tried = before("move", old, new, "--dry-run", app=None)
    moved = before("move", "jobs_app:queue", new, app=None)

    assert (tried.status, tried.out) == (0, "4 jobs and the last runs of 0 schedules would be moved.\n"), tried.err
    warned = [
        line for line in moved.err.splitlines() if "keeps no append-only file" not in line
    ]  # Redis, as tests have it
    assert (moved.status, moved.out, warned) == (0, "4 jobs and the last runs of 0 schedules moved.\n", [])
    assert after("jobs", "--json").out == listed
    assert before("jobs").out == "There are no such jobs.\n"
    assert after("work", "--once").out == "hello Ada\n" * 3


async def test_what_workers_hold_is_left_and_said(fastqueue: Command, tmp_path: Path) -> None:
    await push(fastqueue.url, *[NewJob(kind="greet", payload='"Ada"', run_at=NOW, hold_ms=10**12)] * 2)
    store = store_of(fastqueue.url)
    await store.open()
    await store.claim(NOW, token=7, limit=1, queues=None, kinds=["greet"])
    await store.close()

    answer = fastqueue("move", fastqueue.url, f"sqlite:///{tmp_path}/new.db", app=None)

    assert (answer.status, answer.out) == (1, "1 job and the last runs of 0 schedules moved.\n")
    assert answer.err == "fastqueue: 1 job is held by workers and left: stop those, and run this again for it\n"


async def test_on_a_terminal_it_is_shown_how_far_it_is(fastqueue: Command, tmp_path: Path) -> None:
    await push(fastqueue.url, *[NewJob(kind="greet", payload='"Ada"', run_at=NOW)] * 3)

    shown = on_a_terminal(fastqueue, "move", fastqueue.url, f"sqlite:///{tmp_path}/new.db", app=None)

    assert "3/3" in shown
    assert shown.splitlines()[-1].endswith("3 jobs and the last runs of 0 schedules moved.")


def test_a_move_to_where_the_jobs_are_is_refused(fastqueue: Command) -> None:
    answer = fastqueue("move", fastqueue.url, fastqueue.url, app=None)

    assert (answer.status, answer.out) == (1, "")
    assert "two ways to one store" in answer.err


@pytest.mark.parametrize("place", ["nowhere", "oracle://db", "no_module:queue"])
def test_a_place_that_is_no_store_is_a_usage_error(fastqueue: Command, place: str) -> None:
    answer = fastqueue("move", fastqueue.url, place, app=None)

    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith("fastqueue: ")


def test_a_password_is_not_shown() -> None:
    answer = Command("")("move", "postgresql://app:secret@127.0.0.1:1/app", "memory://", app=None)

    assert answer.status == 1
    assert "secret" not in answer.err + answer.out

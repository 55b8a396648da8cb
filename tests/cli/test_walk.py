"""Every command on every store, one after the other, as somebody on call types them."""

from __future__ import annotations

import json

import pytest

from tests.cli.command import Command

pytestmark = pytest.mark.processes

STORES = ["sqlite_url", "postgres_url", "mysql_url", "redis_url"]


@pytest.fixture(params=STORES)
def fastqueue(request: pytest.FixtureRequest) -> Command:
    """The command on a new store of each sort."""
    return Command(request.getfixturevalue(request.param))


def test_a_day_on_call(fastqueue: Command) -> None:
    def does(*words: str) -> str:
        answer = fastqueue(*words)
        assert (answer.status, answer.err) == (0, ""), (words, answer)
        return answer.out

    if not fastqueue.url.startswith("redis"):
        does("migrate")
        assert "fastqueue_jobs" in does("sql")
    does("push", "greet", '"Ada"')
    does("push", "refuse", '"no mailbox"')
    does("push", "refuse", '"no such town"')
    assert [job["kind"] for job in json.loads(does("jobs", "--json"))] == ["greet", "refuse", "refuse"]
    assert {row["kind"]: row["waiting"] for row in json.loads(does("status", "--json"))} == {"greet": 1, "refuse": 2}
    assert "nightly" in does("schedules")
    does("doctor")
    does("check")

    worked = fastqueue("work", "--stop-when-empty")
    assert worked.status == 0
    assert "hello Ada" in worked.out

    first, second = json.loads(does("failed", "--json"))
    assert {first["error"], second["error"]} == {"no mailbox", "no such town"}
    does("retry", str(first["id"]))
    does("forget", str(second["id"]))
    assert does("failed") == "No job has failed.\n"
    (again,) = json.loads(does("jobs", "--kind", "refuse", "--json"))
    assert again["id"] == first["id"]
    does("prune")

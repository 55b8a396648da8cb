"""Failed jobs by the command: listed, run again, forgotten."""

from __future__ import annotations

import json

import pytest

from fastqueue.job import NewJob
from tests.cli.command import NOW, Command, push, push_failed


async def test_failed_lists_what_a_person_has_to_know(fastqueue: Command) -> None:
    await push_failed(fastqueue.url, "no such mailbox", carried='{"request_id":"abc-1"}')

    (job,) = json.loads(fastqueue("failed", "--json").out)

    assert next(iter(job)) == "id"
    del job["id"]
    assert job == {
        "kind": "greet",
        "failed": "2026-09-01 12:00:00 UTC",
        "attempts": 1,
        "request": "abc-1",
        "payload": '"Ada"',
        "error": "no such mailbox",
    }


async def test_control_characters_are_shown_and_not_obeyed(fastqueue: Command) -> None:
    await push_failed(fastqueue.url, "red \x1b[31m\r\nline", payload='"a\x9bb"')

    answer = fastqueue("failed")

    assert "red \\x1b[31m\\r\\nline" in answer.out
    assert '"a\\x9bb"' in answer.out
    assert len(answer.out.splitlines()) == 2, "a heading, and one line for the job"


async def test_failed_obeys_its_filters_and_says_when_there_is_nothing(fastqueue: Command) -> None:
    _, last = await push_failed(fastqueue.url, "one", "two")

    assert [job["id"] for job in json.loads(fastqueue("failed", "--limit", "1", "--json").out)] == [last]
    assert fastqueue("failed", "--kind", "slow").out == "No job has failed.\n"


@pytest.mark.parametrize("url", ["sqlite_url", "postgres_url", "mysql_url"])
async def test_unknown_ids_are_named_and_the_rest_is_done(url: str, request: pytest.FixtureRequest) -> None:
    fastqueue = Command(request.getfixturevalue(url))
    first, second, third = await push_failed(fastqueue.url, "one", "two", "three")

    retried = fastqueue("retry", "987654", str(first))
    forgotten = fastqueue("forget", str(second), "987654", str(first))

    assert (retried.status, retried.out) == (1, "1 job back to run.\n")
    assert retried.err == "fastqueue: no failed job has the id 987654\n"
    assert (forgotten.status, forgotten.out) == (1, "1 job forgotten.\n")
    assert forgotten.err == f"fastqueue: no failed job has the id 987654, {first}\n"
    left = {job["id"]: job["state"] for job in json.loads(fastqueue("jobs", "--json").out)}
    assert left == {first: "waiting", third: "failed"}


async def test_all_takes_every_failed_job_and_no_other(fastqueue: Command) -> None:
    await push_failed(fastqueue.url, *["gone wrong"] * 3)
    await push(fastqueue.url, NewJob(kind="slow", payload="0", run_at=NOW))

    assert fastqueue("retry", "all").out == "3 jobs back to run.\n"
    none_left = fastqueue("forget", "all")

    assert (none_left.status, none_left.out) == (0, "0 jobs forgotten.\n")


@pytest.mark.parametrize("word", ["nine", str(2**63)])
def test_a_word_that_is_no_id_is_a_usage_error(fastqueue: Command, word: str) -> None:
    assert fastqueue("forget", word).status == 2

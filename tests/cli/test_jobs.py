"""Failed jobs by the command: listed, run again, forgotten."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from fastqueue.cli._commands import app
from fastqueue.job import NewJob
from tests.cli.command import NOW, PATIENCE, Command, on_a_terminal, push, push_failed


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


@pytest.mark.parametrize("url", ["sqlite_url", "postgres_url", "mysql_url", "redis_url"])
async def test_failed_obeys_its_filters_and_says_when_there_is_nothing(
    url: str, request: pytest.FixtureRequest
) -> None:
    fastqueue = Command(request.getfixturevalue(url))
    first, last = await push_failed(fastqueue.url, "no mailbox", "timeout")

    few = fastqueue("failed", "--limit", "1", "--json")
    chosen = fastqueue("failed", "--error", "mail", "--queue", "default", "--older-than", "1s", "--json")

    assert [job["id"] for job in json.loads(few.out)] == [last]
    assert few.err == ""
    assert [job["id"] for job in json.loads(chosen.out)] == [first]
    assert fastqueue("failed", "--kind", "slow").out == "No job has failed.\n"
    assert json.loads(fastqueue("failed", "--newer-than", "1s", "--json").out) == []


async def test_a_listing_that_is_cut_short_says_so(fastqueue: Command) -> None:
    await push_failed(fastqueue.url, *["gone wrong"] * 3)

    cut, whole = fastqueue("failed", "--limit", "2"), fastqueue("failed", "--limit", "0")

    assert (len(cut.out.splitlines()), len(whole.out.splitlines())) == (3, 4)
    assert cut.err == "fastqueue: these are the first 2, and there are more; --limit 0 shows all\n"
    assert whole.err == fastqueue("failed", "--limit", "3").err == ""


async def test_failed_jobs_are_grouped_by_what_went_wrong(fastqueue: Command) -> None:
    await push_failed(fastqueue.url, "timeout", "no mailbox")
    ids = await push_failed(fastqueue.url, "no mailbox")

    largest, other = json.loads(fastqueue("failed", "--group", "--json").out)

    moment = "2026-09-01 12:00:00 UTC"
    wanted = {"id": ids[0], "kind": "greet", "jobs": 2, "first": moment, "last": moment, "error": "no mailbox"}
    assert (next(iter(largest)), largest) == ("id", wanted)
    assert (other["jobs"], other["error"]) == (1, "timeout")


async def test_on_a_terminal_each_job_is_shown_with_its_value_and_error_below(fastqueue: Command) -> None:
    (id,) = await push_failed(fastqueue.url, "red \x1b[31m\u202e", carried='{"request_id":"abc-1"}')

    shown = on_a_terminal(fastqueue, "failed")

    assert shown == (
        f"{id}  greet  failed 2026-09-01 12:00:00 UTC  attempts 1  request abc-1\n"
        '    payload  "Ada"\n'
        "    error    red \\x1b[31m\\u202e\n"
        "\n"
        "1 job. Run one again: fastqueue retry ID. Delete one: fastqueue forget ID.\n"
    )


@pytest.mark.parametrize("url", ["sqlite_url", "postgres_url", "mysql_url", "redis_url"])
async def test_unknown_ids_are_named_and_the_rest_is_done(url: str, request: pytest.FixtureRequest) -> None:
    fastqueue = Command(request.getfixturevalue(url))
    first, second, third = await push_failed(fastqueue.url, "one", "two", "three")

    retried = fastqueue("retry", "987654", str(first))
    forgotten = fastqueue("forget", str(second), "987654", str(first))

    assert (retried.status, retried.out) == (1, "1 job back to run.\n")
    assert retried.err == "fastqueue: no failed job has the id 987654\n"
    assert (forgotten.status, forgotten.out) == (1, "1 job forgotten.\n")
    assert forgotten.err == f"fastqueue: no failed job has the id {first}, 987654\n"
    left = {job["id"]: job["state"] for job in json.loads(fastqueue("jobs", "--json").out)}
    assert left == {first: "waiting", third: "failed"}


async def test_all_takes_every_failed_job_and_no_other(fastqueue: Command) -> None:
    await push_failed(fastqueue.url, *["gone wrong"] * 3)
    await push(fastqueue.url, NewJob(kind="slow", payload="0", run_at=NOW))

    assert fastqueue("retry", "all").out == "3 jobs back to run.\n"
    none_left = fastqueue("forget", "all")

    assert (none_left.status, none_left.out) == (0, "0 jobs forgotten.\n")


@pytest.mark.parametrize("url", ["sqlite_url", "postgres_url", "mysql_url", "redis_url"])
async def test_failed_jobs_are_chosen_by_what_they_have_in_common(url: str, request: pytest.FixtureRequest) -> None:
    fastqueue = Command(request.getfixturevalue(url))
    first, second, third = await push_failed(fastqueue.url, "no mailbox", "timeout", "no such mailbox")

    tried = fastqueue("retry", "--error", "mailbox", "--dry-run")
    retried = fastqueue("retry", "--error", "mailbox", "--pace", "1/m")
    forgotten = fastqueue("forget", "all", "--kind", "greet")

    assert (tried.status, tried.out) == (0, "2 jobs would be back to run.\n")
    assert (retried.status, retried.out) == (0, "2 jobs back to run.\n")
    assert forgotten.out == "1 job forgotten.\n"
    left = {job["id"]: job["state"] for job in json.loads(fastqueue("jobs", "--json").out)}
    assert left == {first: "delayed", third: "waiting"}, "the latest failure is the first to run"
    assert second not in left


async def test_a_job_that_waits_already_is_said_to(fastqueue: Command) -> None:
    (id,) = await push(fastqueue.url, NewJob(kind="slow", payload="0", run_at=NOW))

    answer = fastqueue("retry", str(id))

    assert (answer.status, answer.out) == (0, "0 jobs back to run.\n")
    assert answer.err == f"fastqueue: {id} has not failed: it waits or runs already\n"


async def test_on_a_terminal_all_is_asked_for_first(fastqueue: Command) -> None:
    await push_failed(fastqueue.url, "one", "two")

    kept = on_a_terminal(fastqueue, "forget", "all", says="n\n")
    gone = on_a_terminal(fastqueue, "forget", "all", says="y\n")

    assert "2 jobs forgotten? [y/N]:" in kept
    assert "Aborted" in kept
    assert gone.endswith("2 jobs forgotten.\n")
    assert "[y/N]" not in on_a_terminal(fastqueue, "forget", "all", "--yes")


@pytest.mark.parametrize(
    "words",
    [
        ("forget", "nine"),
        ("forget", str(2**63)),
        ("forget",),
        ("forget", "all", "1"),
        ("forget", "1", "--kind", "greet"),
        ("retry", "all", "--pace", "0/s"),
        ("retry", "all", "--pace", "5"),
        ("failed", "--older-than", "2"),
        ("failed", "--newer-than", "d"),
    ],
)
def test_words_that_choose_nothing_are_a_usage_error(words: tuple[str, ...]) -> None:
    answer = CliRunner().invoke(app, [*words, "--app", "tests.cli.memory_app:queue"])

    assert answer.exit_code == 2, answer.output


async def test_any_number_of_failed_jobs_is_listed_without_keeping_them(fastqueue: Command) -> None:
    await push_failed(fastqueue.url, *["gone wrong"] * 1_100)

    listed = json.loads(fastqueue("failed", "--limit", "0", "--json").out)

    assert len({job["id"] for job in listed}) == 1_100
    assert fastqueue("retry", "all").out == "1100 jobs back to run.\n"


async def test_a_reader_that_has_seen_enough_ends_the_listing(fastqueue: Command) -> None:
    await push_failed(fastqueue.url, *["gone wrong " * 100] * 600)
    command = fastqueue.start("failed", "--limit", "0")
    assert command.stdout is not None
    command.stdout.readline()
    command.stdout.close()

    assert command.wait(PATIENCE) == 1
    assert command.stderr is not None
    assert command.stderr.read() == ""
    command.stderr.close()

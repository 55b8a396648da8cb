"""A job pushed by the command."""

from __future__ import annotations

import json
import time

import pytest

from tests.cli.command import Command


@pytest.mark.parametrize("url", ["sqlite_url", "postgres_url", "mysql_url"])
def test_a_job_is_pushed_and_its_id_printed(url: str, request: pytest.FixtureRequest) -> None:
    fastqueue = Command(request.getfixturevalue(url))

    first = fastqueue("push", "greet", '"Ada"')
    second = fastqueue("push", "slow", "0.5", "--at", "2096-09-01T12:00:00+02:00", "--queue", "high", "--attempts", "3")

    assert (first.status, second.status) == (0, 0), first.err + second.err
    greet, slow = json.loads(fastqueue("jobs", "--json").out)
    assert (str(greet["id"]), greet["state"], greet["payload"]) == (first.out.strip(), "waiting", '"Ada"')
    assert (str(slow["id"]), slow["state"], slow["queue"]) == (second.out.strip(), "delayed", "high")
    assert slow["due"] == "2096-09-01 10:00:00 UTC"
    assert fastqueue("work", "--once").out == "hello Ada\n"


def test_a_delay_is_counted_from_now(fastqueue: Command) -> None:
    before = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(time.time() + 3600))
    fastqueue("push", "greet", '"Ada"', "--delay", "3600")
    after = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(time.time() + 3600))

    (job,) = json.loads(fastqueue("jobs", "--json").out)
    assert before <= job["due"] <= after


def test_a_job_that_waits_with_its_key_is_said_to(fastqueue: Command) -> None:
    first = fastqueue("push", "once", '"a"')

    second = fastqueue("push", "once", '"a"')

    assert (second.status, second.out) == (0, first.out)
    assert second.err == f"fastqueue: nothing was added: job {first.out.strip()} waits with the same unique key\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("greet", "[1]"), "the value does not fit kind 'greet': value: Input should be a valid string"),
        (("greet", "Ada"), "does not fit kind 'greet': value: Invalid JSON"),
        (("great", '"Ada"'), "the queue has no kind 'great'; did you mean 'greet'?"),
        (("greet", '"Ada"', "--at", "noon"), "--at 'noon' is no moment"),
        (("greet", '"Ada"', "--at", "2096-09-01T12:00:00"), "has no time zone"),
        (("greet", '"Ada"', "--at", "2096-09-01T12:00:00Z", "--delay", "1"), "give one"),
        (("greet", '"Ada"', "--queue", " "), "the queue name"),
    ],
)
def test_what_cannot_be_pushed_is_a_usage_error_that_says_why(
    fastqueue: Command, words: tuple[str, ...], said: str
) -> None:
    answer = fastqueue("push", *words)

    assert (answer.status, answer.out) == (2, "")
    assert said in answer.err
    assert answer.err.count("\n") == 1

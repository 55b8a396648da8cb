"""What the environment says of workers: read as meant, or refused with the variable's name and the remedy."""

from __future__ import annotations

import pytest

from fastqueue.environ import QueueSettings
from fastqueue.errors import OptionError

read = QueueSettings.from_environ


def test_nothing_set_leaves_everything_to_the_app() -> None:
    assert read({}) == read({"QUEUE_WORKERS": "", "QUEUE_NAMES": " "}) == QueueSettings()


def test_all_of_it_can_be_set() -> None:
    variables = {
        "QUEUE_CONCURRENCY": "8",
        "QUEUE_IN_SERVE": "no",
        "QUEUE_NAMES": "high, default",
        "SHUTDOWN_TIMEOUT": "2.5",
    }

    assert read(variables) == QueueSettings(workers=8, in_serve=False, queues=("high", "default"), grace=2.5)


def test_a_server_without_workers_and_a_command_with_some_share_an_environment() -> None:
    assert read({"QUEUE_WORKERS": "0", "QUEUE_CONCURRENCY": "8"}) == QueueSettings(workers=8, in_serve=False)
    assert read({"QUEUE_WORKERS": "0"}) == QueueSettings(in_serve=False)


def test_two_numbers_for_one_thing_are_refused() -> None:
    assert read({"QUEUE_WORKERS": "3", "QUEUE_CONCURRENCY": "3"}).workers == 3
    with pytest.raises(OptionError, match=r"QUEUE_WORKERS is 2 and QUEUE_CONCURRENCY is 3, .*: set one of them"):
        read({"QUEUE_WORKERS": "2", "QUEUE_CONCURRENCY": "3"})


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("QUEUE_WORKERS", "many", "give a whole number, 0 or more"),
        ("QUEUE_WORKERS", "-1", "give a whole number, 0 or more"),
        ("QUEUE_CONCURRENCY", "²", "give a whole number, 0 or more"),
        ("QUEUE_IN_SERVE", "maybe", "give true or false"),
        ("QUEUE_NAMES", "high,,low", "give names of queues, each once"),
        ("QUEUE_NAMES", "high,high", "give names of queues, each once"),
        ("SHUTDOWN_TIMEOUT", "soon", "give seconds, 0 or more"),
        ("SHUTDOWN_TIMEOUT", "inf", "give seconds, 0 or more"),
        ("SHUTDOWN_TIMEOUT", "-1", "give seconds, 0 or more"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_variable_value_and_remedy(name: str, value: str, remedy: str) -> None:
    with pytest.raises(OptionError) as refused:
        read({name: value})
    assert str(refused.value).startswith(f"{name} cannot be {value!r}: {remedy}")

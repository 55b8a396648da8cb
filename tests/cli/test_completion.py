"""The shell's completion, as the shell asks for it."""

from __future__ import annotations

import pytest

from tests.cli.command import Command


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("fastqueue do", ["doctor"]), ("fastqueue work --st", ["--stop-when-empty"])],
)
def test_bash_is_offered_commands_and_options(fastqueue: Command, typed: str, offered: list[str]) -> None:
    words = typed.split()
    asking = {
        "_FASTQUEUE_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(words) - 1),
    }

    answer = Command(fastqueue.url, environ=asking)(app=None)

    assert (answer.status, answer.out.split()) == (0, offered), answer.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_is_printed(fastqueue: Command, shell: str) -> None:
    asking = {"_FASTQUEUE_COMPLETE": f"source_{shell}"}

    answer = Command(fastqueue.url, environ=asking)(app=None)

    assert answer.status == 0
    assert f"_FASTQUEUE_COMPLETE=complete_{shell}" in answer.out

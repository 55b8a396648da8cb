"""What the pages tell to type exists: commands and their options, scripts, extras."""

from __future__ import annotations

import os
import re
import shlex
import tomllib

import pytest
from typer.testing import CliRunner

from fastqueue.cli._commands import app
from tests.docs.test_pages import PAGES, ROOT

OF_OTHERS = {"curl", "docker", "git", "gunicorn", "kubectl", "python", "uvicorn"}
"""Commands that are not ours to check."""

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def typed(page: str) -> list[str]:
    """The lines that a page tells to type, without what follows a `|`, a `>` or a comment."""
    consoles: list[str] = re.findall(r"```console\n(.*?)```", PAGES[page].read_text(), re.DOTALL)
    lines = [line.removeprefix("$ ") for console in consoles for line in console.splitlines() if line.startswith("$ ")]
    return [re.split(r" +(?:[|>]|# )", line)[0] for line in lines]


def check(line: str) -> None:
    words = [word for word in shlex.split(line) if not re.fullmatch(r"[A-Z_]+=.*", word)]
    match words:
        case ["fastqueue", *rest]:
            # Options are parsed before the help is shown, and nothing is run.
            done = CliRunner().invoke(app, [*rest, "--help"])
            assert done.exit_code == 0, done.output
        case ["pip", "install", what]:
            for extra in re.findall(r"\[(.*?)\]", what):
                assert set(extra.split(",")) <= PROJECT["optional-dependencies"].keys()
        case ["bash", script, *_] | [script, *_] if "/" in script:
            assert os.access(ROOT / script, os.X_OK), script
        case [name, *_]:
            assert name in OF_OTHERS, f"{name}: a command that no test knows"
        case _:
            pytest.fail("an empty line")


@pytest.mark.parametrize("page", sorted(PAGES))
def test_the_commands_of_a_page_exist_and_have_the_options_that_it_gives_them(page: str) -> None:
    for line in typed(page):
        check(line)


@pytest.mark.parametrize(
    "line", ["fastqueue work --proceses 4", "fastqueue wrok", "pip install 'fastqueue[postgress]'", "scripts/tset"]
)
def test_what_is_not_there_is_found(line: str) -> None:
    with pytest.raises(AssertionError):
        check(line)

"""Rules that every file keeps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONGEST_MODULE = 400
PLACES = (".ci", "docs", "example_app", "fastqueue", "scripts", "tests")

# In pieces, so that this file keeps its own rule.
FOREIGN = re.compile(
    "|".join(
        (
            r"\bshared" + "/",
            r"(?<![\w.])/(?:root|work|home)" + "/",
            "py" + r"pi\.org",
            "python" + "hosted",
            "npm" + r"js\.",
        )
    ),
)


def text_files() -> Iterator[Path]:
    """The files of the repository that a person wrote."""
    inside = (path for place in PLACES for path in (ROOT / place).rglob("*"))
    for path in sorted([*inside, *ROOT.iterdir()]):
        if path.is_file() and path.name != ".git" and "__pycache__" not in path.parts:
            yield path


def test_a_module_is_short_enough_to_be_read_in_one_go() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in ROOT.glob("fastqueue/**/*.py")
    }
    assert not {path: length for path, length in lengths.items() if length > LONGEST_MODULE}


def test_no_module_is_named_after_nothing() -> None:
    nothing = {"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"}
    assert not [path for path in ROOT.glob("fastqueue/**/*.py") if path.stem.strip("_") in nothing]


def test_the_project_names_no_place_outside_itself() -> None:
    found: list[str] = []
    for path in text_files():
        try:
            lines = path.read_text().splitlines()
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}:{number}" for number, line in enumerate(lines, 1) if FOREIGN.search(line)]
    assert not found


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_requirements_are_sorted_and_pinned_plainly(name: str) -> None:
    lines = (ROOT / name).read_text().splitlines()
    assert lines == sorted(lines, key=str.lower)
    plain = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+(; sys_platform .+)?")
    assert not [line for line in lines if not plain.fullmatch(line)]


def test_the_development_set_holds_all_that_the_example_needs() -> None:
    run, development = (
        set((ROOT / name).read_text().splitlines()) for name in ("requirements.txt", "requirements-dev.txt")
    )
    assert run <= development

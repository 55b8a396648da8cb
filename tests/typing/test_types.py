"""mypy and pyright see the right types in `right.py`, and each mistake in `wrong.py`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

MISTAKE = "await mail.push(other)"
MENDED = 'await mail.push(Mail(to="ada"))'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Both files, and a copy of the wrong one in which a mistake is no longer there, but its comments are."""
    for name in ("right.py", "wrong.py"):
        (tmp_path / name).write_text((HERE / name).read_text())
    wrong = (HERE / "wrong.py").read_text()
    assert wrong.count(MISTAKE) == 1
    (tmp_path / "mended.py").write_text(wrong.replace(MISTAKE, MENDED))
    return tmp_path


def the_mended_line(folder: Path) -> int:
    lines = (folder / "mended.py").read_text().splitlines()
    return 1 + next(number for number, line in enumerate(lines) if MENDED in line)


def said_by(tool: str, *arguments: str) -> str:
    run = subprocess.run([sys.executable, "-m", tool, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 1, run.stdout + run.stderr
    return run.stdout


@pytest.mark.processes
def test_mypy_finds_every_mistake_and_no_other(folder: Path) -> None:
    report = said_by("mypy", *(str(path) for path in folder.glob("*.py")))
    errors = [line for line in report.splitlines() if ": error: " in line]
    (error,) = errors
    assert f"mended.py:{the_mended_line(folder)}: " in error
    assert 'Unused "type: ignore" comment' in error


@pytest.mark.processes
def test_pyright_finds_every_mistake_and_no_other(folder: Path) -> None:
    settings = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "venvPath": str(ROOT),
        "venv": ".venv",
        "enableTypeIgnoreComments": False,  # those are for mypy, and would hide what pyright does not find
        "reportUnnecessaryTypeIgnoreComment": True,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    report = json.loads(said_by("pyright", "--outputjson", "--project", str(folder)))
    (error,) = report["generalDiagnostics"]
    assert Path(error["file"]).name == "mended.py"
    assert error["range"]["start"]["line"] + 1 == the_mended_line(folder)
    assert error["message"].startswith("Unnecessary")

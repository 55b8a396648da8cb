from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stores.sqlite_crowd import WRITES

ROOT = Path(__file__).parents[2]


@pytest.mark.processes
def test_four_processes_and_an_app_s_own_writing_share_one_new_file(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    crowd = [("worker", name) for name in "abcd"] + [("app", name) for name in "ef"]
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.stores.sqlite_crowd", role, name, str(path)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for role, name in crowd
    ]
    pushed: list[int] = []
    settled: list[int] = []
    for process in running:
        out, error = process.communicate(timeout=240)
        assert (process.returncode, error) == (0, "")
        told = json.loads(out)
        pushed += told["pushed"]
        settled += told["settled"]

    assert len(pushed) == len(set(pushed)) > 0
    assert sorted(settled) == sorted(pushed)
    left = sqlite3.connect(path)
    assert left.execute("SELECT count(*) FROM fastqueue_jobs").fetchone() == (0,)
    assert left.execute("SELECT count(*) FROM users").fetchone() == (2 * WRITES,)
    assert left.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    left.close()

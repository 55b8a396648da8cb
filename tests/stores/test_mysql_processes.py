from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stores.mysql_rows import connected

ROOT = Path(__file__).parents[2]


@pytest.mark.processes
@pytest.mark.parametrize("pushes", [pytest.param(60, id="short"), pytest.param(600, id="long", marks=pytest.mark.long)])
def test_pushers_and_claimers_in_two_processes_end_every_job_once_and_meet_no_error(
    mysql_url: str, pushes: int
) -> None:
    """Eight push, a tenth of it in transactions of which half are rolled back, and eight claim and settle."""
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.stores.mysql_crowd", name, mysql_url, str(pushes)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in "ab"
    ]
    pushed: list[int] = []
    settled: list[int] = []
    for process in running:
        out, error = process.communicate(timeout=280)
        assert (process.returncode, error) == (0, "")
        told = json.loads(out)
        pushed += told["pushed"]
        settled += told["settled"]

    with connected(mysql_url) as cursor:
        cursor.execute("SELECT id FROM fastqueue_jobs")
        left = [id for (id,) in cursor.fetchall()]
    assert len(pushed) == len(set(pushed)) > 0
    assert len(settled) == len(set(settled))
    assert sorted(settled + left) == sorted(pushed)

"""The queue as a whole by the command: its app, schedules, tables, counts, and what no longer fits."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fastqueue.cli._schedules import _runs
from fastqueue.job import NewJob
from fastqueue.schedule import cron
from fastqueue.stores import store_of
from tests.cli.command import NOW, Command, push, push_failed


def test_the_queue_is_found_in_an_app_and_in_pyproject(fastqueue: Command, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.fastqueue]\nqueue = "shop:jobs"\n')
    (tmp_path / "shop.py").write_text('from fastqueue import Queue\njobs = Queue("memory://")\n')

    assert fastqueue("schedules", app="jobs_app:app").status == 0
    assert Command(fastqueue.url, tmp_path)("schedules", app=None).out == "The queue has no schedules.\n"


@pytest.mark.parametrize("app", [None, "no_module:queue", "jobs_app:something"])
def test_an_app_without_a_queue_is_a_usage_error_that_says_so(fastqueue: Command, app: str | None) -> None:
    answer = fastqueue("failed", app=app)

    assert answer.status == 2
    assert answer.err.startswith("fastqueue: ")
    assert answer.err.count("\n") == 1
    assert app is None or app in answer.err


def test_without_its_extra_the_command_gives_the_install_line() -> None:
    code = "import sys; sys.modules['typer'] = None; from fastqueue.cli import main; main()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (ended.returncode, ended.stderr) == (
        2,
        "fastqueue: the command needs typer: pip install 'fastqueue[cli]'\n",
    )


def test_schedules_show_their_next_runs_in_both_clocks(fastqueue: Command) -> None:
    nightly, hourly = json.loads(fastqueue("schedules", "-n", "3", "--json").out)

    assert (nightly["id"], nightly["zone"], len(nightly["runs"])) == ("nightly", "Europe/Paris", 3)
    assert (hourly["id"], hourly["kind"], hourly["when"]) == ("hourly", "nightly", "every hour")
    for run in nightly["runs"]:
        assert datetime.fromisoformat(run["at"]) == datetime.fromisoformat(run["there"])
        assert run["at"].endswith("+00:00")


def test_a_run_after_a_clock_change_is_marked() -> None:
    before_the_change = datetime(2026, 10, 23, 12, tzinfo=UTC)

    runs = list(_runs(cron("0 12 * * *", tz="Europe/Paris"), before_the_change, 3))

    assert [f"{run.there:%d %H:%M %z}" for run in runs] == ["24 12:00 +0200", "25 12:00 +0100", "26 12:00 +0100"]
    assert [run.at.hour for run in runs] == [10, 11, 11]
    assert [run.changed for run in runs] == [False, True, False]


@pytest.mark.parametrize("url", ["sqlite_url", "postgres_url", "mysql_url"])
async def test_migrate_makes_the_tables_once(url: str, request: pytest.FixtureRequest) -> None:
    fastqueue = Command(request.getfixturevalue(url))
    migrates = store_of(fastqueue.url).migrates
    assert migrates is not None

    first, second = fastqueue("migrate"), fastqueue("migrate")

    applied = ", ".join(str(number) for number in range(1, migrates.latest + 1))
    assert first.out == f"Applied {applied}: the tables are at migration {migrates.latest}.\n"
    assert second.out == f"Nothing to do: the tables are at migration {migrates.latest}.\n"
    assert fastqueue("sql").out == migrates.sql()
    assert fastqueue("sql", "--since", str(migrates.latest)).out == ""


async def test_status_counts_by_queue_and_kind(fastqueue: Command) -> None:
    await push_failed(fastqueue.url, "one", "two")
    await push(fastqueue.url, NewJob(kind="slow", payload="0", run_at=NOW, queue="later"))

    failed, waiting = json.loads(fastqueue("status", "--json").out)

    assert (failed["id"], failed["failed"], failed["oldest_seconds"]) == ("default/greet", 2, None)
    assert (waiting["id"], waiting["waiting"] + waiting["delayed"]) == ("later/slow", 1)


@pytest.mark.parametrize("url", ["sqlite_url", "postgres_url", "mysql_url"])
async def test_check_names_what_the_code_cannot_read(url: str, request: pytest.FixtureRequest) -> None:
    fastqueue = Command(request.getfixturevalue(url))
    later = 4_000_000_000_000
    (failed,) = await push_failed(fastqueue.url, "late", payload="[1]")
    delayed, _ = await push(
        fastqueue.url,
        NewJob(kind="greet", payload="{}", run_at=later),
        NewJob(kind="greet", payload='"Ada"', run_at=NOW),
    )
    unheard_of = await push(fastqueue.url, *[NewJob(kind="unheard of", payload="1", run_at=NOW)] * 1_007)

    answer = fastqueue("check", "--json")

    unfit, unknown = json.loads(answer.out)
    assert answer.status == 1
    assert (unfit["id"], unfit["kind"], unfit["jobs"], unfit["of"]) == (failed, "greet", 2, 3)
    assert (unfit["first"], unfit["states"]) == ([failed, delayed], {"failed": 1, "delayed": 1})
    assert "does not fit kind 'greet'" in unfit["reason"]
    assert (unknown["kind"], unknown["jobs"], unknown["first"]) == ("unheard of", 1_007, unheard_of[:5])


async def test_check_says_how_many_jobs_it_has_read(fastqueue: Command) -> None:
    assert fastqueue("check").out == "Every job fits: 0 jobs of 0 kinds.\n"
    await push(fastqueue.url, *[NewJob(kind="greet", payload='"Ada"', run_at=NOW)] * 3)

    answer = fastqueue("check")

    assert (answer.status, answer.out) == (0, "Every job fits: 3 jobs of 1 kind.\n")


def test_a_store_that_cannot_be_reached_is_exit_1(tmp_path: Path) -> None:
    answer = Command("postgresql://postgres@127.0.0.1:1/nowhere")("status")

    assert answer.status == 1
    assert answer.err.startswith("fastqueue: ")

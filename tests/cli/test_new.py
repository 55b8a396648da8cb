"""Modules that the command writes for their authors to go on from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import Command

ROOT = Path(__file__).parents[2]


@pytest.fixture
def fastqueue(tmp_path: Path) -> Command:
    """The command in an empty folder."""
    return Command("memory://", tmp_path)


def new(fastqueue: Command, *words: str) -> str:
    answer = fastqueue("new", *words, app=None)
    assert answer.status == 0, answer.err
    return answer.out


def passes(folder: Path, *words: str) -> None:
    done = subprocess.run([sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def check(folder: Path) -> None:
    passes(folder, "ruff", "check", "--isolated", "--select", "ALL", "--ignore", "T201,INP001,D,CPY", ".")
    passes(folder, "ruff", "format", "--isolated", "--check", ".")
    passes(folder, "mypy", "--strict", "--config-file", "", ".")


def run(folder: Path, program: str) -> str:
    (folder / "run_it.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "run_it.py"], cwd=folder, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["SendInvoice", "send-invoice", "send_invoice"])
def test_a_new_job_passes_the_checks_and_runs(fastqueue: Command, tmp_path: Path, name: str) -> None:
    assert new(fastqueue, "job", name) == (
        "send_invoice.py is written. Join it to the queue: queue.include(send_invoice.kinds)\n"
    )
    if name == "SendInvoice":
        check(tmp_path)
    program = (
        "import asyncio, send_invoice\nfrom fastqueue import Queue\n"
        "queue = Queue('memory://')\nqueue.include(send_invoice.kinds)\n"
        "send_invoice.send_invoice.push_sync(send_invoice.SendInvoice(id=7))\nasyncio.run(queue.drain())\n"
    )
    assert run(tmp_path, program) == "send-invoice 7\n"


def test_a_new_listener_brings_its_event_or_imports_it(fastqueue: Command, tmp_path: Path) -> None:
    new(fastqueue, "listener", "UpdateStock", "--event", "OrderShipped")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "shop" / "events.py").write_text("class OrderPaid(int):\n    pass\n")
    new(fastqueue, "listener", "TellTheBuyer", "--event", "shop.events:OrderPaid", "--into", "listeners")
    check(tmp_path)
    program = (
        "import asyncio, update_stock\nfrom fastqueue import Queue\n"
        "queue = Queue('memory://')\nqueue.include(update_stock.events)\n"
        "update_stock.events.publish_sync(update_stock.OrderShipped(id=7))\nasyncio.run(queue.drain())\n"
    )
    assert run(tmp_path, program) == "update-stock id=7\n"
    assert "from shop.events import OrderPaid\n" in (tmp_path / "listeners" / "tell_the_buyer.py").read_text()


def test_a_file_that_is_there_is_left_alone(fastqueue: Command, tmp_path: Path) -> None:
    (tmp_path / "send_invoice.py").write_text("mine\n")
    answer = fastqueue("new", "job", "SendInvoice", app=None)
    assert answer.status == 1
    assert "send_invoice.py is there already and was left alone" in answer.err
    assert (tmp_path / "send_invoice.py").read_text() == "mine\n"


@pytest.mark.parametrize(
    "words",
    [
        ("job", "../escape"),
        ("job", "send invoice"),
        ("job", "7up"),
        ("job", ""),
        ("job", "class"),
        ("job", "json"),
        ("job", "print"),
        ("job", "Kinds"),
        ("job", "BaseModel"),
        ("listener", "UpdateStock"),
        ("listener", "UpdateStock", "--event", "order shipped"),
        ("listener", "UpdateStock", "--event", "shop events:OrderShipped"),
        ("listener", "UpdateStock", "--event", 'X"): pass #'),
    ],
)
def test_a_name_that_makes_no_module_is_a_usage_error_and_writes_nothing(
    fastqueue: Command, tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert fastqueue("new", *words, app=None).status == 2
    assert list(tmp_path.iterdir()) == []

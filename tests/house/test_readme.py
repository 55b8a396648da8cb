"""The README's program runs as it stands, and does what the lines under it say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import httpx
import pytest

from tests.servers.throwaway import free_port

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "CONTRIBUTING.md")
GIVES_UP_AFTER = 60.0


class Served:
    """An app served by uvicorn in a process of its own; what it prints can be waited for."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self._process = process
        self.address = address
        self.printed: list[str] = []

    def register(self, email: str) -> int:
        # A connection each: uvicorn closes one on which a request has failed.
        return httpx.post(f"{self.address}/register", params={"email": email}).status_code

    def wait_for(self, words: str) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self.printed.append(line)
            if words in line:
                return
        pytest.fail(f"the server never printed {words!r}:\n{''.join(self.printed)}")


@contextmanager
def served(program: str, folder: Path) -> Generator[Served]:
    (folder / "app.py").write_text(program)
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "app:app", "--port", str(port)],
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    watchdog = Timer(GIVES_UP_AFTER, process.kill)
    watchdog.start()
    try:
        server = Served(process, f"http://127.0.0.1:{port}")
        server.wait_for("Uvicorn running")
        yield server
    finally:
        watchdog.cancel()
        process.terminate()
        process.communicate(timeout=GIVES_UP_AFTER)


@pytest.mark.processes
def test_the_first_program_sends_a_mail_for_each_user_that_is_kept_and_for_no_other(tmp_path: Path) -> None:
    program = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert program
    with served(program[1], tmp_path) as server:
        assert server.register("ada@example.org") == 200
        server.wait_for("a mail to ada@example.org")

        assert server.register("ada@example.org") == 500
        assert server.register("joan@example.org") == 200
        server.wait_for("a mail to joan@example.org")

    assert sum("a mail to ada@example.org" in line for line in server.printed) == 1


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_links_to_is_there(page: str) -> None:
    links: list[str] = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / page).read_text())
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]

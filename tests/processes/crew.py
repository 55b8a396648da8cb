"""The processes of a test: started as modules of this folder, killed without warning, and never left behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[2]


class Member:
    """One process, spoken to line by line."""

    def __init__(self, module: str, *args: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"tests.processes.{module}", *map(str, args)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, line: object) -> None:
        """Send it a line."""
        given = _there(self._process.stdin)
        given.write(f"{line}\n")
        given.flush()

    def hear(self) -> str:
        """Wait for its next line; empty when it has ended."""
        return _there(self._process.stdout).readline().rstrip("\n")

    @property
    def works(self) -> bool:
        """Whether it still runs: none of these ends by itself but by an error, which it has shown."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it at once, whatever it was at."""
        self._process.kill()
        self._process.communicate()


def _there(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


@contextmanager
def crew_of(size: int, module: str, *args: object) -> Generator[list[Member]]:
    """Several processes of one sort, up and ready; the list may be changed, and what it holds at the end is killed."""
    members = [Member(module, *args) for _ in range(size)]
    try:
        assert [member.hear() for member in members] == ["ready"] * size
        yield members
    finally:
        for member in members:
            member.kill()

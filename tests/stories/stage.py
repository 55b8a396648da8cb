"""What the stories happen on: servers that are processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

from tests.servers.throwaway import free_port

__all__ = ["Server", "appears", "serving"]

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0


class Server(NamedTuple):
    """A server that answers."""

    process: subprocess.Popen[bytes]
    url: str


@contextmanager
def serving(app: str, *, folder: Path) -> Generator[Server]:
    """Serve an app by uvicorn in a folder, and kill it at the end if it is still there."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", app, "--port", str(port), "--log-level", "error"]
    process = subprocess.Popen(command, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)})
    try:
        server = Server(process, f"http://127.0.0.1:{port}")
        until = time.monotonic() + PATIENCE
        while not _answers(server.url):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
        yield server
    finally:
        process.kill()
        process.wait()


def appears(path: Path) -> Path:
    """A file, once another process has written it."""
    until = time.monotonic() + PATIENCE
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < until, f"{path.name} did not appear"
        time.sleep(0.05)
    return path


def _answers(url: str) -> bool:
    try:
        httpx.get(url)
    except httpx.TransportError:
        return False
    return True

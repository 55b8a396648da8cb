"""Real servers, each a process of its own with processes of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.servers.throwaway import free_port

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
"""Seconds until what comes by itself is taken for lost; how soon it comes decides nothing."""

UVICORN = ("uvicorn", "--workers", "2", "--timeout-worker-healthcheck", "60")
GUNICORN = ("gunicorn", "--workers", "2", "--worker-class", "uvicorn_worker.UvicornWorker", "--timeout", "120")


@dataclass(frozen=True)
class Place:
    """Where an app is deployed: a database, and a ledger beside it."""

    url: str
    ledger: Path

    @property
    def environ(self) -> dict[str, str]:
        return os.environ | {"JOBS": self.url, "LEDGER": str(self.ledger), "PYTHONPATH": str(ROOT)}

    def page(self, name: str) -> Counter[int]:
        """What all processes wrote on a page, and how often."""
        lines = [line for page in self.ledger.glob(f"{name}.*") for line in page.read_text().split()]
        return Counter(map(int, lines))

    def writers(self, name: str) -> set[int]:
        """The processes that wrote on a page."""
        return {int(page.suffix[1:]) for page in self.ledger.glob(f"{name}.*")}

    def open_gate(self) -> None:
        (self.ledger / "gate").touch()

    def work(self) -> None:
        """Run what is left, by a worker of its own."""
        command = [sys.executable, "-m", "fastqueue.cli", "work", "--stop-when-empty", "--app"]
        command += ["tests.deployed.site:queue"]
        subprocess.run(command, env=self.environ, cwd=ROOT, check=True, timeout=PATIENCE, capture_output=True)


@dataclass(frozen=True)
class Server:
    """A server that answers."""

    process: subprocess.Popen[bytes]
    log: Path
    client: httpx.AsyncClient

    async def pid(self) -> int:
        """The process that answers just now."""
        answer = await self.client.get("/pid", headers={"Connection": "close"})
        return int(answer.json())

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    async def ended(self) -> int:
        """Its exit status, when it has ended."""
        await until(lambda: self.process.poll() is not None, "the server's end")
        return self.process.returncode


async def until(true: Callable[[], bool], what: str) -> None:
    """Wait for what another process does, which tells nobody."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not true():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"{what} did not come") from None


@asynccontextmanager
async def serving(
    place: Place,
    command: Sequence[str] = UVICORN,
    *,
    app: str = "tests.deployed.site:app",
    folder: Path = ROOT,
    ready: str = "/pid",
    **environ: str,
) -> AsyncGenerator[Server]:
    """Start a server, wait until it answers, and end it."""
    port = free_port()
    name, *options = command
    address = ["--bind", f"127.0.0.1:{port}"] if name == "gunicorn" else ["--port", str(port)]
    log = place.ledger / f"{name}.{port}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: ASYNC220  it is asked by signals, and waited for by looking
            [sys.executable, "-m", name, *address, *options, app],
            cwd=folder,
            env=place.environ | environ,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client:
            await _answers(process, client, ready, log)
            yield Server(process, log, client)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


async def _answers(process: subprocess.Popen[bytes], client: httpx.AsyncClient, path: str, log: Path) -> None:
    async with asyncio.timeout(PATIENCE):
        while process.poll() is None:
            with suppress(httpx.TransportError):
                if (await client.get(path, headers={"Connection": "close"})).status_code == 200:
                    return
            await asyncio.sleep(0.05)
    raise AssertionError(f"the server ended, see {log}")

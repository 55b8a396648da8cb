"""A site under load: four processes that run jobs, one that pushes them, and what is done to them."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from fastqueue.stores import store_of
from tests.faults.ledger import Figures, Harm, Ledger, judged
from tests.faults.proxy import Proxy
from tests.faults.servers import Server

__all__ = ["SOON", "Site"]

ROOT = Path(__file__).parents[2]

SOON = 60.0
"""Seconds that everything has to come to its end once the faults are over."""


class Site:
    """The processes on one database, and their ledger.

    Attributes:
        url: Where the processes find the store.
        workers: The processes that run jobs.
        harms: The faults so far.
        line: What the processes reach the server by; None: they reach it directly.
        server: The server, when it is the site's own.
        leak: How many bytes each run takes for good, in the processes started from now on.
    """

    def __init__(self, url: str, folder: Path, *, line: Proxy | None = None, server: Server | None = None) -> None:
        self.url = url
        self.ledger = Ledger(folder / "ledger")
        self.workers: list[subprocess.Popen[bytes]] = []
        self.harms: list[Harm] = []
        self.line, self.server = line, server
        self.leak = 0
        self._pusher: subprocess.Popen[bytes] | None = None

    @asynccontextmanager
    async def under_load(self, workers: int = 4) -> AsyncGenerator[Site]:
        """Work goes on in the block; then no more is pushed, and it ends when all that was is through."""
        self.workers = [self.process("works") for _ in range(workers)]
        try:
            self._pusher = self.process("pushes")
            await self.until("end", 20)
            yield self
            self._pusher.send_signal(signal.SIGTERM)
            await asyncio.to_thread(self._pusher.wait, SOON)
            await self._through()
        finally:
            for process in self.processes:
                process.kill()
                process.wait()

    @property
    def processes(self) -> list[subprocess.Popen[bytes]]:
        """The workers, and the one that pushes."""
        return [*self.workers, *([self._pusher] if self._pusher else [])]

    def process(self, does: str, *, wrong: float = 0) -> subprocess.Popen[bytes]:
        """Start a process of the app."""
        arguments = [does, self.url, str(self.ledger.path), str(wrong), str(self.leak)]
        return subprocess.Popen([sys.executable, "-m", "tests.faults.worker", *arguments], cwd=ROOT)

    async def until(self, word: str, times: int) -> None:
        """Wait until the ledger has so many lines of a word more than now."""
        await self.seen(word, times + self.ledger.count(word))

    async def seen(self, word: str, times: int) -> None:
        """Wait until the ledger has so many lines of a word."""
        async with asyncio.timeout(SOON):
            while self.ledger.count(word) < times:  # noqa: ASYNC110 - other processes keep the ledger
                await asyncio.sleep(0.02)

    async def _through(self) -> None:
        store = store_of(self.url)
        await store.open()
        until = time.monotonic() + SOON
        try:
            while left := await store.jobs(now=0, limit=1):
                assert time.monotonic() < until, f"at {time.time():.3f} it is not through with {left[0]}"
                await asyncio.sleep(0.05)
        finally:
            await store.close()

    def harmed(self, since: float, process: int | None = None, *, doubles: bool = True) -> None:
        """Take down a fault that is over now."""
        self.harms.append(Harm(since, time.time(), process, doubles))

    async def replace(self, worker: subprocess.Popen[bytes], how: signal.Signals = signal.SIGKILL) -> None:
        """End a worker, and start another in its stead."""
        since = time.time()
        worker.send_signal(how)
        await asyncio.to_thread(worker.wait, SOON)
        self.workers.remove(worker)
        self.harmed(since, worker.pid, doubles=how is signal.SIGKILL)
        self.workers.append(self.process("works"))

    def figures(self) -> Figures:
        """What has come of it all."""
        return judged(self.ledger, self.harms)

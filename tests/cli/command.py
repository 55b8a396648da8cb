"""The command as a process of its own, on an app beside these tests."""

from __future__ import annotations

import errno
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fastqueue.job import NewJob
from fastqueue.outcome import Settlement
from fastqueue.stores import store_of

NOW = 1_788_264_000_000
"""2026-09-01 12:00 UTC."""

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PATIENCE = 30


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said, and its exit status."""

    status: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Command:
    """Calls `fastqueue` with a store, in a folder."""

    url: str
    folder: Path = HERE
    environ: Mapping[str, str] = field(default_factory=dict[str, str])

    def start(
        self,
        *words: str,
        app: str | None = "jobs_app:queue",
        stderr: int = subprocess.PIPE,
        terminal: int | None = None,
    ) -> subprocess.Popen[str]:
        """Begin a command, in pipes or on a terminal."""
        given = [] if app is None else ["--app", app]
        return subprocess.Popen(
            [sys.executable, "-m", "fastqueue.cli", *words, *given],
            cwd=self.folder,
            env={**os.environ, "JOBS": self.url, "PYTHONPATH": str(ROOT), **self.environ},
            stdin=terminal,
            stdout=terminal or subprocess.PIPE,
            stderr=terminal or stderr,
            text=True,
        )

    def __call__(self, *words: str, app: str | None = "jobs_app:queue") -> Answer:
        """Run a command to its end."""
        return ended(self.start(*words, app=app))


def ended(process: subprocess.Popen[str]) -> Answer:
    """Wait for a command to end."""
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        raise
    # The suite's Redis may keep nothing on disk, and then each command warns of that.
    warned = "keeps no append-only file"
    said = "".join(line for line in (err or "").splitlines(keepends=True) if warned not in line)
    return Answer(process.returncode, out, said)


def on_a_terminal(command: Command, *words: str, says: str = "", app: str | None = "jobs_app:queue") -> str:
    """What a command shows on a terminal, on which somebody types; line ends as in a file."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb+", buffering=0) as terminal:
        process = command.start(*words, terminal=theirs, app=app)
        os.close(theirs)
        terminal.write(says.encode())
        shown = b""
        try:
            while piece := terminal.read(4096):
                shown += piece
        except OSError as error:  # so Linux ends a terminal that nobody writes to any more
            if error.errno != errno.EIO:
                raise
        process.wait(PATIENCE)
    return shown.decode().replace("\r\n", "\n")


async def push(url: str, *jobs: NewJob) -> list[int]:
    """Put jobs into the store; answer their ids."""
    store = store_of(url)
    await store.open()
    try:
        return [pushed.id for pushed in await store.push(jobs, now=NOW)]
    finally:
        await store.close()


async def push_failed(url: str, *errors: str, payload: str = '"Ada"', carried: str | None = None) -> list[int]:
    """Put jobs into the store that have failed, one for each error; answer their ids."""
    jobs = [NewJob(kind="greet", payload=payload, run_at=NOW, carried=carried) for _ in errors]
    ids = await push(url, *jobs)
    store = store_of(url)
    await store.open()
    try:
        claim = await store.claim(NOW, token=7, limit=len(ids), queues=None, kinds=["greet"])
        fates = [Settlement.fail(job, at=NOW, error=error) for job, error in zip(claim.jobs, errors, strict=True)]
        assert all(await store.settle(fates))
    finally:
        await store.close()
    return ids

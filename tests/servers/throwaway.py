"""Servers that live as long as a `with` block, in a folder of their own that goes with them."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

STARTS_WITHIN = 30.0
"""Seconds that a server may take to answer."""


class Account(TypedDict, total=False):
    """The arguments of `subprocess.Popen` that say who a server runs as."""

    user: int
    group: int
    extra_groups: list[int]


class Sandbox:
    """A fresh folder, owned by the user that its processes run as."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._account: Account = {}
        if entry := _server_account():
            os.chown(folder, entry.pw_uid, entry.pw_gid)
            self._account = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}

    def may_run(self, program: Path) -> bool:
        """Whether the sandbox's user can reach a program: an environment in a private home is closed to others."""
        try:
            subprocess.run([program, "--version"], check=True, capture_output=True, **self._account)
        except PermissionError:
            return False
        return True

    def run(self, *command: str | Path) -> None:
        """Run a command to its end; what it printed is in the error when it fails."""
        done = subprocess.run(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **self._account
        )
        if done.returncode:
            raise RuntimeError(f"{command[0]} exited with {done.returncode}:\n{done.stdout}")

    @contextmanager
    def serve(
        self, *command: str | Path, answers: Callable[[], object], stop: signal.Signals = signal.SIGTERM
    ) -> Generator[None]:
        """Run a server for as long as the block; it is up once `answers` no longer raises."""
        log = self.folder / "server.log"
        with log.open("wb") as output:
            # A session of its own: Ctrl-C must end the tests before the server that they clean up on.
            process = subprocess.Popen(
                command, cwd=self.folder, stdout=output, stderr=output, start_new_session=True, **self._account
            )
        try:
            _wait(process, answers, log)
            yield
        finally:
            process.send_signal(stop)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def sandbox() -> Generator[Sandbox]:
    """A sandbox that is removed with all its files."""
    folder = Path(tempfile.mkdtemp(prefix="fastqueue-"))
    try:
        yield Sandbox(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def free_port(highest: int = 65_535) -> int:
    """A TCP port of 127.0.0.1, at most `highest`, that nothing listens on."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port <= highest:
            return port


def find_program(*names: str, folders: str = "/usr/sbin") -> Path | None:
    """The first of these programs on the PATH or in the folders where servers are kept."""
    path = f"{os.environ.get('PATH', '')}:{folders}"
    for name in names:
        if found := shutil.which(name, path=path):
            return Path(found)
    return None


def _server_account() -> pwd.struct_passwd | None:
    """Who servers run as when not as ourselves: database servers refuse root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("database servers refuse to run as root, and there is no user `postgres` or `nobody`")


def _wait(process: subprocess.Popen[bytes], answers: Callable[[], object], log: Path) -> None:
    deadline = time.monotonic() + STARTS_WITHIN
    while True:
        try:
            answers()
        except Exception as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{process.args!r} did not start:\n{log.read_text(errors='replace')}") from error
            time.sleep(0.02)
        else:
            return

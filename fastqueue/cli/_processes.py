"""`fastqueue work --processes N`: a process that starts others, starts them again when they crash, and stops them.

Each child holds one end of a pair of sockets as its standard input. It sends a byte up when it begins to work; and
when its end is read out, the parent is gone, however that came, and the child stops in order.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress

from fastqueue.cli._worker import exit_at_once

__all__ = ["Processes"]

log = logging.getLogger("fastqueue")

FIRST_PAUSE, LONGEST_PAUSE, HEALTHY = 1.0, 60.0, 60.0
"""Seconds before a process that crashed is started again: at first, at most, and how long one must have worked for its
crash to be a first one."""


class _CannotWork(Exception):
    """A process ended before it began to work: another would do the same."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Processes:
    """Keeps a number of processes at work.

    Args:
        words: The command of each.
        number: How many.
        to_an_end: They end when nothing is due, so none is started again.
    """

    def __init__(self, words: Sequence[str], number: int, *, to_an_end: bool) -> None:
        self._words = words
        self._number = number
        self._to_an_end = to_an_end
        self._children = set[Process]()
        self._keepers: list[asyncio.Task[int]] = []
        self._first_works = asyncio.Event()
        self._stopping = False

    async def work(self) -> int:
        """Work until told to stop, or until all have ended by themselves; answer the exit status.

        It is told by a signal. A second one kills the processes, and ends this one.
        """
        self._keepers = [asyncio.create_task(self._keep(place)) for place in range(self._number)]
        self._stop_by_signals()
        await asyncio.wait(self._keepers, return_when=asyncio.FIRST_EXCEPTION)
        self._stop()
        return max(map(_exit_status, await asyncio.gather(*self._keepers, return_exceptions=True)))

    def _stop(self) -> None:
        """Have each process end in its own time. Once only: a keeper cancelled again would not wait for that."""
        if not self._stopping:
            self._stopping = True
            for keeper in self._keepers:
                keeper.cancel()

    async def _keep(self, place: int) -> int:
        """Keep one process at work; answer its exit status when it is not to be started again."""
        if place > 0:
            await self._first_works.wait()  # what keeps a process from its work is then said once
        pause = FIRST_PAUSE
        clock = asyncio.get_running_loop().time
        while True:
            begun = clock()
            works, pid, status = await self._one()
            if not works:
                log.error("process %d %s before it began to work", pid, _how(status))
                raise _CannotWork(status)
            if self._to_an_end:
                if status:
                    log.error("process %d %s", pid, _how(status))
                return status
            if clock() - begun >= HEALTHY:
                pause = FIRST_PAUSE
            log.error("process %d %s; another is started in %g s", pid, _how(status), pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _one(self) -> tuple[bool, int, int]:
        """Start a process, and wait for its end: whether it came to work, its id, and its exit status."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                # A group of its own, so that Ctrl-C reaches it by this process only.
                child = await asyncio.create_subprocess_exec(*self._words, stdin=theirs.fileno(), process_group=0)
            self._children.add(child)
            try:
                works = await _first_byte(ours) != b""
                if works:
                    log.info("process %d works", child.pid)
                    self._first_works.set()
                return works, child.pid, await child.wait()
            finally:
                if child.returncode is None:
                    child.terminate()
                    await child.wait()
                self._children.discard(child)

    def _stop_by_signals(self) -> None:
        told = False

        def hear(number: int) -> None:
            nonlocal told
            if told:
                for child in self._children:
                    with suppress(ProcessLookupError):
                        child.kill()
                exit_at_once(128 + number)
            told = True
            log.info("stopping")
            self._stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, hear, number)


async def _first_byte(line: socket.socket) -> bytes:
    line.setblocking(False)
    try:
        return await asyncio.get_running_loop().sock_recv(line, 1)
    except ConnectionError:
        return b""


def _how(status: int) -> str:
    """How a process ended, from what asyncio says of it."""
    return f"ended with exit status {status}" if status >= 0 else f"was ended by {signal.Signals(-status).name}"


def _exit_status(ended: int | BaseException) -> int:
    """What a process's end means for the whole: being told to stop is no fault, a signal is one."""
    if isinstance(ended, asyncio.CancelledError):
        return 0
    if isinstance(ended, _CannotWork):
        ended = ended.status
    if isinstance(ended, BaseException):
        raise ended
    return ended if ended >= 0 else 1

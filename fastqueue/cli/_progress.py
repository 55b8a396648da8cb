"""How the runs of this process went: counted, shown on one line of a terminal, and told at the end."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from fastqueue.outcome import Outcome, Ran
from fastqueue.queue import Queue

__all__ = ["Progress"]


class Progress:
    """Counts how a queue's runs end; what observed them before still does."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._ended = Counter[Outcome]()
        self._observe, queue.observe = queue.observe, self

    def __call__(self, ran: Ran) -> None:
        self._ended[ran.outcome] += 1
        if self._observe is not None:
            self._observe(ran)

    def __str__(self) -> str:
        """The numbers: "12 done, 1 failed"."""
        return ", ".join(f"{self._ended[outcome]} {outcome}" for outcome in Outcome if self._ended[outcome]) or "none"

    @contextmanager
    def shown(self, *, alone: bool) -> Generator[None]:
        """Keep the numbers on the last line of a terminal that this process has alone; all else is written above it."""
        if not alone or not sys.stderr.isatty():
            yield
            return
        with Live(get_renderable=self._line, console=Console(stderr=True), transient=True) as live:
            live.console.show_cursor(True)  # a second signal leaves the terminal as it is
            yield

    def _line(self) -> Text:
        running = 0 if self._queue.worker is None else len(self._queue.worker.running)
        return Text(f"{running} running; ended: {self}", overflow="ellipsis", no_wrap=True)

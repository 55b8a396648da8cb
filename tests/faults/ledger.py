"""What really happened, written by those who did it to a file outside the queue; it decides.

A line is a moment, the process, a word and a number. Each is one write to a file that is only added to, so the lines
of processes that are killed stay whole.
"""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

__all__ = ["Figures", "Harm", "Ledger", "judged"]


class Line(NamedTuple):
    """One thing that a process did."""

    at: float
    process: int
    word: str
    number: int


class Ledger:
    """A file of lines, which any process may add to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._read = 0
        self._words: Counter[str] = Counter()

    def note(self, word: str, number: int) -> None:
        """Add a line."""
        os.write(self._file, f"{time.time():.4f} {os.getpid()} {word} {number}\n".encode())

    def lines(self) -> list[Line]:
        """All lines, in the order in which they were written."""
        found = [line.split() for line in self.path.read_text().splitlines()]
        return [Line(float(at), int(process), word, int(number)) for at, process, word, number in found]

    def count(self, word: str) -> int:
        """How many lines have a word; it reads on where it was."""
        with self.path.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        whole = new.rpartition(b"\n")[0]
        self._read += len(whole) + 1 if whole else 0
        self._words.update(line.split()[2].decode() for line in whole.splitlines())
        return self._words[word]


@dataclass(frozen=True)
class Harm:
    """A fault, from one moment to another.

    Attributes:
        process: The process it hit; None: all of them.
        doubles: Whether what was in flight may run twice: not when a process ended in order.
    """

    begun: float
    ended: float
    process: int | None = None
    doubles: bool = True

    def explains(self, process: int, since: float, until: float) -> bool:
        """Whether a job that a process began to run may have been run by another too."""
        return self.doubles and self.process in (None, process) and self.begun <= until and self.ended >= since


@dataclass
class Figures:
    """What came of a scenario.

    Attributes:
        pushed: Jobs whose push said that they are kept.
        run: Jobs that ran to their end.
        lost: Of those pushed, those that never did.
        doubled: Jobs that ran to their end more than once.
        unexplained: Of those, the ones that no fault hit between the two runs.
        refused: Pushes that raised.
        stall: The longest time, in seconds, in which no run ended while there was work.
        back: After each fault, the time in seconds until a run ended; the longest.
        faults: How many faults there were.
    """

    pushed: int = 0
    run: int = 0
    lost: list[int] = field(default_factory=list)
    doubled: list[int] = field(default_factory=list)
    unexplained: list[int] = field(default_factory=list)
    refused: int = 0
    stall: float = 0.0
    back: float = 0.0
    faults: int = 0


def stall(line: Line) -> Harm:
    """A process that had no turn for so many milliseconds."""
    return Harm(line.at - line.number / 1000, line.at, line.process)


def judged(ledger: Ledger, harms: list[Harm]) -> Figures:
    """Read a ledger, knowing what was done to whom."""
    lines = ledger.lines()
    # A crowded machine freezes processes too.
    everything = [*harms, *(stall(line) for line in lines if line.word == "stalled")]
    by_word: dict[str, set[int]] = defaultdict(set)
    runs: dict[int, list[Line]] = defaultdict(list)
    for line in lines:
        by_word[line.word].add(line.number)
        if line.word == "end":
            runs[line.number].append(line)
    figures = Figures(pushed=len(by_word["pushed"]), run=len(runs), faults=len(harms))
    figures.lost = sorted(by_word["pushed"] - set(runs))
    figures.refused = len(by_word["refused"])
    for number, ends in runs.items():
        if len(ends) > 1:
            figures.doubled.append(number)
            begun = {line.process: line.at for line in reversed(lines) if (line.word, line.number) == ("start", number)}
            if not all(
                any(
                    harm.explains(run.process, begun[run.process], then.at)
                    for harm in everything
                    for run in (first, then)
                )
                for first, then in pairwise(ends)
            ):
                figures.unexplained.append(number)
    moments = sorted(line.at for line in lines if line.word == "end")
    figures.stall = max((then - first for first, then in pairwise(moments)), default=0.0)
    after = [next((at for at in moments if at > harm.ended), harm.ended) - harm.ended for harm in harms]
    figures.back = max(after, default=0.0)
    return figures

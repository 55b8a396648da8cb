"""How many jobs to claim: as many as can start soon, and no more."""

from __future__ import annotations

__all__ = ["LookAhead"]

HORIZON = 0.025
"""Seconds of measured work that may wait here: more only makes jobs wait that another process could run."""

MOST = 100
"""A process that dies strands at most this many jobs, and those it runs, until their holds end."""

_WEIGHT = 0.2


class LookAhead:
    """The window of jobs that may be claimed beyond the free workers, so that quick jobs do not cost a claim each.

    It starts at 0, doubles when claims come back full and as many runs have ended, and is cut at once to what the
    measured run times allow. A job with `at_once` or a rate in a claim closes it: while it merely waited here it would
    hold a place that another process could fill.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._mean: float | None = None
        self._ended = 0
        self.size = 0

    def ran(self, seconds: float) -> None:
        """A handler was called and took so long."""
        self._ended += 1
        self._mean = seconds if self._mean is None else self._mean + _WEIGHT * (seconds - self._mean)
        if self.size * self._mean > self._workers * HORIZON:
            self.size = self._allowed()

    def claimed(self, *, full: bool, limited: bool) -> None:
        """A claim has answered: as many as were asked for, or fewer; one of them holds a place, or none."""
        if limited:
            self.close()
        elif full and self._ended >= max(self.size, self._workers):
            self._ended = 0
            self.size = min(max(self.size * 2, self._workers), self._allowed())

    def close(self) -> None:
        """Claim for free workers only, until jobs have shown to be quick again."""
        self.size = 0
        self._ended = 0

    def _allowed(self) -> int:
        if self._mean is None:
            return 0
        allowed = MOST if self._mean <= 0 else min(MOST, int(self._workers * HORIZON / self._mean))
        return allowed if allowed >= self._workers else 0

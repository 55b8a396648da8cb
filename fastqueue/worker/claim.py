"""How many jobs to claim: as many as can start soon, and no more."""

from __future__ import annotations

__all__ = ["LookAhead"]

HORIZON = 0.025
"""Seconds of measured work that may wait here: more only makes jobs wait that another process could run."""

HORIZON_AT_ONCE = 0.002
"""The same for jobs with `at_once`, each of which holds a place of all processes while it waits: about the seconds that
a claim and a settlement hold it anyway."""

MOST = 100
"""A process that dies strands at most this many jobs, or as many as it has workers if those are more, and those it
runs, until their holds end."""

_WEIGHT = 0.2


class LookAhead:
    """The window of jobs that may be claimed beyond the free workers, so that quick jobs do not cost a claim each.

    It starts at 0, doubles when claims come back full and as many runs have ended, and is cut at once to what the
    measured run times allow. Jobs with `at_once` in a claim cut it to what their own run times allow, and one with a
    rate closes it: most of those that waited here would only be refused.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._mean: float | None = None
        self._mean_at_once: float | None = None
        self._ended = 0
        self.size = 0

    def ran(self, seconds: float, *, at_once: bool = False) -> None:
        """A handler was called and took so long; its job was one with `at_once`, or not."""
        self._ended += 1
        self._mean = _moved(self._mean, seconds)
        if at_once:
            self._mean_at_once = _moved(self._mean_at_once, seconds)
        if self.size * self._mean > self._workers * HORIZON:
            self.size = self._allowed(self._mean, HORIZON)

    def claimed(self, *, full: bool, at_once: bool = False, rate: bool = False) -> None:
        """A claim has answered: as many as were asked for, or fewer; some of them with `at_once` or a rate, or none."""
        allowed = 0 if rate else self._allowed(self._mean, HORIZON)
        if at_once:
            allowed = min(allowed, self._allowed(self._mean_at_once, HORIZON_AT_ONCE))
        self.size = min(self.size, allowed)
        if full and self._ended >= max(self.size, self._workers):
            self._ended = 0
            self.size = min(max(self.size * 2, self._workers), allowed)

    def close(self) -> None:
        """Claim for free workers only, until jobs have shown to be quick again."""
        self.size = 0
        self._ended = 0

    def _allowed(self, mean: float | None, horizon: float) -> int:
        if mean is None:
            return 0
        most = max(MOST, self._workers)
        allowed = most if mean <= 0 else min(most, int(self._workers * horizon / mean))
        return allowed if allowed >= self._workers else 0


def _moved(mean: float | None, seconds: float) -> float:
    return seconds if mean is None else mean + _WEIGHT * (seconds - mean)

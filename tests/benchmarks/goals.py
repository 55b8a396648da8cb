"""What fastqueue is to reach, as ratios within one run, and whether a run's table shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tests.benchmarks.peers import PEERS

__all__ = ["goals", "markdown"]

BEST = "best peer"


class Goal(NamedTuple):
    """A bound for a figure of fastqueue's.

    Attributes:
        against: Whose figure it is divided by, and of which measure, if not the same; None: the figure itself is bound.
        at_most: The bound is the highest value, not the lowest.
    """

    store: str
    measure: str
    against: str | tuple[str, str] | None
    bound: float
    at_most: bool = False


DRAIN, TUNED, BATCH = "drain, defaults", "drain, tuned", "push, 1,000 in a call"
ONE, TEN = "push, one caller", "push, ten callers"
OURS = ("fastqueue", DRAIN)
BEHIND = "claim of 100 behind 500,000 of {} kind"

GOALS = (
    Goal("postgres", DRAIN, "raw", 0.6),
    Goal("postgres", DRAIN, BEST, 6),
    Goal("postgres", TUNED, "raw", 0.6),
    Goal("postgres", TUNED, BEST, 3),
    Goal("postgres", ONE, "raw", 0.85),
    Goal("postgres", TEN, "raw", 2),
    Goal("postgres", BATCH, "raw", 0.6),
    Goal("postgres", "pick-up from another process, p50", None, 0.6, at_most=True),
    Goal("postgres", "pick-up from another process, p99", None, 2, at_most=True),
    Goal("postgres", "pick-up after a commit elsewhere, p50", None, 1.2, at_most=True),
    Goal("postgres", "pick-up in the same process, p50", None, 0.4, at_most=True),
    Goal("postgres", "drain, a tenth limited", ("raw", DRAIN), 0.5),
    Goal("postgres", "drain, each one at a time by its key", ("raw", DRAIN), 0.4),
    *(
        Goal("postgres", BEHIND.format(kind), ("fastqueue", BEHIND.format("no")), 2, at_most=True)
        for kind in ("an unknown", "a held-back", "a full")
    ),
    *(Goal(store, "loop lag in a drain, p95", None, 5, at_most=True) for store in ("postgres", "sqlite", "redis")),
    Goal("postgres", "drain, 1,000,000 more waiting", ("fastqueue", "drain, 1,000 more waiting"), 0.95),
    Goal("postgres", "drain, 1,000,000 failed", ("fastqueue", "drain, 1,000 more waiting"), 0.95),
    Goal("postgres", "drain, old snapshot held", OURS, 0.85),
    Goal("sqlite", DRAIN, "raw", 0.4),
    Goal("sqlite", TEN, ("raw", ONE), 5),
    Goal("mysql", TUNED, "raw", 0.5),
    Goal("redis", DRAIN, BEST, 3),
    Goal("redis", ONE, BEST, 3),
    Goal("redis", TEN, BEST, 3),
    Goal("redis", BATCH, BEST, 3),
    Goal("postgres", f"{DRAIN}: CPU a job", None, 25, at_most=True),
    Goal("postgres", "transactions of an idle worker", None, 1.1, at_most=True),
    Goal("postgres", "memory of the worker", None, 60, at_most=True),
)


def goals(found: Sequence[dict[str, Any]]) -> Iterator[tuple[Goal, float, str]]:
    """Each goal whose figures a table of `bench.table` has, with what was reached and its unit."""
    figures = {(line["store"], line["measure"], line["who"]): line for line in found}
    for goal in GOALS:
        ours = figures.get((goal.store, goal.measure, "fastqueue"))
        if ours is None:
            continue
        if goal.against is None:
            yield goal, ours["value"], ours["unit"]
            continue
        if goal.against == BEST:
            peers = (line["value"] for key, line in figures.items() if key[:2] == key_of(goal) and key[2] in PEERS)
            base = max(peers, default=None)
        else:
            who, measure = (goal.against, goal.measure) if isinstance(goal.against, str) else goal.against
            base = figures.get((goal.store, measure, who), {}).get("value")
        if base:
            yield goal, ours["value"] / base, "x"


def key_of(goal: Goal) -> tuple[str, str]:
    """The store and the measure of a goal."""
    return goal.store, goal.measure


def markdown(found: Sequence[dict[str, Any]]) -> str:
    """The goals as a table of a page."""
    lines = ["| store | measure | against | goal | reached | |", "| --- | --- | --- | --- | --- | --- |"]
    for goal, value, unit in goals(found):
        against = goal.against if isinstance(goal.against, str) else ": ".join(goal.against or ())
        met = value <= goal.bound if goal.at_most else value >= goal.bound
        sign, unit = "≤" if goal.at_most else "≥", "" if unit == "x" else f" {unit}"
        cells = (goal.store, goal.measure, against, f"{sign} {goal.bound:g}{unit}", f"{value:.2f}{unit}")
        lines.append(f"| {' | '.join(cells)} | {'yes' if met else '**no**'} |")
    return "\n".join(lines) + "\n"

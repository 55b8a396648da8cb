"""The worker in a thousand small worlds, each made from a seed: to see one again, run its seed alone.

`python -m pytest "tests/faults/test_simulation.py" -k "faults and 17"`
"""

from __future__ import annotations

import logging
import random

import pytest

from tests.faults.simulation import World
from tests.faults.virtual import run_at_once

SHORT = 30
SEEDS = [pytest.param(seed, marks=[pytest.mark.long] if seed >= SHORT else []) for seed in range(1000)]
STEPS = 60


def live(seed: int, *, faults: float) -> World:
    """A world from its beginning to its end."""
    logging.getLogger("fastqueue").setLevel(logging.CRITICAL)

    async def main() -> World:
        world = World(seed, faults=faults)
        await world.live(STEPS)
        return world

    before = random.getstate()
    random.seed(seed)
    try:
        return run_at_once(main())
    finally:
        random.setstate(before)
        logging.getLogger("fastqueue").setLevel(logging.NOTSET)


@pytest.mark.parametrize("seed", SEEDS)
def test_without_faults_each_job_runs_to_its_end_once_or_fails_once(seed: int) -> None:
    live(seed, faults=0)


@pytest.mark.parametrize("seed", SEEDS)
def test_with_faults_nothing_is_lost_or_stuck_and_only_what_was_in_flight_runs_twice(seed: int) -> None:
    live(seed, faults=0.03)


def test_a_world_goes_the_same_way_each_time() -> None:
    first, second = live(5, faults=0.03), live(5, faults=0.03)
    assert [str(run) for run in first.ledger.started] == [str(run) for run in second.ledger.started]
    assert len(first.ledger.started) > 50

"""Every store beside the memory store, in histories that Hypothesis makes up, and makes small when one goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from fastqueue.stores import store_of
from fastqueue.testing.conformance.model import History
from fastqueue.testing.conformance.stage import Stage

STORES = ["sqlite", "postgres", "mysql", "redis"]

_CHOICES = st.randoms(use_true_random=False)
_NUMBERS = count()


def verb(name: str, *, needs: str | None = None) -> Callable[[Histories, Random], None]:
    """A rule: do one thing on both stores, with choices that Hypothesis can make smaller."""

    def step(self: Histories, random: Random) -> None:
        self.do(name, random)

    def able(self: Histories) -> bool:
        return needs is None or getattr(self.stage.store, needs) is not None

    return precondition(able)(rule(random=_CHOICES)(step))


class Histories(RuleBasedStateMachine):
    """The verbs of the port in any order: each answer, and now and then all that is kept, is as the memory store's."""

    stage: Stage
    run: Callable[[Coroutine[Any, Any, None]], None]

    def __init__(self) -> None:
        super().__init__()
        self.history = History(self.stage, Random(next(_NUMBERS)))
        self.broken = False

    push = verb("push")
    claim = verb("claim")
    settle = verb("settle")
    give_back = verb("give_back")
    renew = verb("renew")
    prune = verb("prune")
    pass_time = verb("pass_time")
    push_run = verb("push_run", needs="schedules")
    hold_back = verb("hold_back", needs="holds")
    run_again = verb("run_again", needs="failed")
    forget = verb("forget", needs="failed")
    hit = verb("hit", needs="throttles")

    def do(self, name: str, random: Random) -> None:
        self.broken = True
        self.history.random = random
        self.run(self.history.do(getattr(self.history, name)))
        self.broken = False

    @invariant()
    def kept_alike(self) -> None:
        if self.history.steps % 5 == 0:
            self.run(self.history.compare())

    def teardown(self) -> None:
        if not self.broken:
            self.run(self.history.compare())
        self.run(self.history.clear())


@pytest.mark.parametrize(
    ("examples", "steps"),
    [pytest.param(15, 40, id="short"), pytest.param(400, 60, id="long", marks=pytest.mark.long)],
)
@pytest.mark.parametrize("name", STORES)
def test_any_history_goes_on_a_database_as_in_memory(
    name: str, examples: int, steps: int, request: pytest.FixtureRequest
) -> None:
    url: str = request.getfixturevalue(f"{name}_url")
    with asyncio.Runner() as runner:
        stage = Stage(lambda: store_of(url))
        opened = stage.opened()
        runner.run(opened.__aenter__())
        machine = type("Histories", (Histories,), {"stage": stage, "run": staticmethod(runner.run)})
        try:
            run_state_machine_as_test(
                machine,
                settings=settings(
                    max_examples=examples,
                    stateful_step_count=steps,
                    deadline=None,
                    derandomize=examples < 100,
                    database=None,
                    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
                ),
            )
        finally:
            runner.run(opened.__aexit__(None, None, None))

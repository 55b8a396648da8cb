"""Fixtures for tests of apps that use fastqueue, as pytest finds them by itself.

It is a module of its own, and imports nothing of fastqueue before a fixture is asked for: a test run that uses none of
them is not a moment slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fastqueue import Queue
    from fastqueue.testing import FakeClock, FakeQueue


@pytest.fixture
def fake_clock() -> FakeClock:
    """A clock that moves when the test moves it; `fake_queue` and `fake_in_place_of` go by it."""
    from fastqueue.testing import FakeClock

    return FakeClock()


@pytest.fixture
def fake_queue(fake_clock: FakeClock) -> FakeQueue:
    """A queue that remembers what is pushed, for apps that are given theirs."""
    from fastqueue.testing import FakeQueue

    return FakeQueue(clock=fake_clock)


@pytest.fixture
def fake_in_place_of(fake_clock: FakeClock) -> Iterator[Callable[[Queue], FakeQueue]]:
    """Called with an app's own queue, it gives the fake that takes its place until the test is over."""
    from fastqueue.testing import FakeQueue

    with ExitStack() as until_the_end:
        yield lambda queue: until_the_end.enter_context(FakeQueue.in_place_of(queue, clock=fake_clock))

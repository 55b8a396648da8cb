"""Limiters by themselves: what a throttle counts, and where."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from fastqueue import Limiter, Throttle
from fastqueue.clock import Clock
from fastqueue.errors import OptionError
from fastqueue.store import Throttles
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import FakeClock


def counts_of(store: MemoryStore) -> Throttles:
    assert store.throttles is not None
    return store.throttles


class Counting:
    """A throttle that counts in a store of its own by a clock moved by hand."""

    def __init__(self, throttle: Throttle, store: MemoryStore | None = None, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.limiter: Limiter = throttle.on(counts_of(store or MemoryStore()), Clock(self.clock).now)

    async def ask(self, kind: str = "mail") -> float:
        """The wait it answers, in seconds."""
        wait = await self.limiter.ask(kind)
        return wait.total_seconds() if isinstance(wait, timedelta) else wait


async def test_it_lets_max_start_in_a_window_and_then_says_how_long_that_still_is() -> None:
    counting = Counting(Throttle(2, 60))
    assert await counting.ask() == 0
    counting.clock.move(20)
    assert await counting.ask() == 0
    assert await counting.ask() == 40
    counting.clock.move(39.999)
    assert await counting.ask() == 0.001


async def test_a_window_ends_when_it_ends_however_many_were_refused() -> None:
    counting = Counting(Throttle(1, 60))
    assert [await counting.ask() for _ in range(4)] == [0, 60, 60, 60]
    counting.clock.move(60)
    assert [await counting.ask() for _ in range(2)] == [0, 60]


async def test_a_window_begins_with_its_first_start_and_not_on_the_minute() -> None:
    counting = Counting(Throttle(1, 60))
    counting.clock.move(59)
    assert await counting.ask() == 0
    counting.clock.move(1)
    assert await counting.ask() == 59


async def test_kinds_are_counted_apart() -> None:
    counting = Counting(Throttle(1, 60))
    assert [await counting.ask("mail"), await counting.ask("text")] == [0, 0]


async def test_throttles_of_one_name_share_a_kind_s_count_and_others_do_not() -> None:
    store, clock = MemoryStore(), FakeClock()
    first = Counting(Throttle(2, 60, name="mail"), store, clock)
    second = Counting(Throttle(2, 60, name="mail"), store.again(), clock)
    other = Counting(Throttle(2, 60, name="other"), store, clock)
    assert [await first.ask(), await second.ask(), await first.ask(), await other.ask()] == [0, 0, 60, 0]


async def test_a_name_and_a_kind_cannot_be_taken_for_another_name_and_kind() -> None:
    store, clock = MemoryStore(), FakeClock()
    assert await Counting(Throttle(1, 60, name="a"), store, clock).ask("bc") == 0
    assert await Counting(Throttle(1, 60, name="ab"), store, clock).ask("c") == 0


async def test_a_throttle_with_a_store_of_its_own_counts_there() -> None:
    own, queues = MemoryStore(), MemoryStore()
    throttle = Throttle(1, 3600, store=own)
    assert throttle.on(counts_of(queues), Clock(FakeClock()).now) is throttle
    assert await throttle.ask("mail") == 0
    refused = await throttle.ask("mail")
    assert isinstance(refused, timedelta)
    assert timedelta() < refused <= timedelta(hours=1)


async def test_a_throttle_in_no_queue_and_without_a_store_cannot_be_asked() -> None:
    with pytest.raises(OptionError, match="pass store="):
        await Throttle(1, 60).ask("mail")


def test_a_store_that_does_not_count_tries_is_refused() -> None:
    store = MemoryStore()
    store.throttles = None
    with pytest.raises(OptionError, match="does not count tries"):
        Throttle(1, 60, store=store)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max": 0}, "max=0; it takes a whole number of at least 1"),
        ({"max": 1.5}, "max=1"),
        ({"max": True}, "max=True"),
        ({"window": 0}, "window=0; a throttle counts in a window of 1 ms or more"),
        ({"window": -1}, "window=-1"),
        ({"window": "1m"}, "window='1m' is no duration"),
        ({"window": float("nan")}, "window=nan"),
    ],
)
def test_a_throttle_that_cannot_be_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Throttle(**given)


def test_a_throttle_is_five_a_minute_unless_it_is_told() -> None:
    throttle = Throttle()
    assert (throttle.max, throttle.window, throttle.name, throttle.store) == (5, 60, "rate", None)

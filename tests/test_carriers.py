from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar

import pytest

from fastqueue import Carrier, CarryVar, Kind, Queue, Unique
from fastqueue.carriers import MAX_CARRIED_BYTES, carried_text
from fastqueue.errors import CarriedTooLarge, OptionError
from fastqueue.job import carried_of
from fastqueue.store import Keep
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import FakeClock

tenant: ContextVar[str | None] = ContextVar("tenant", default=None)
unset: ContextVar[str] = ContextVar("unset")


class Gives:
    """A carrier that has every job bring the same."""

    def __init__(self, **carried: str) -> None:
        self.carried = carried

    def pushing(self, kind: str, queue: str, carried: dict[str, str], count: int, /) -> AbstractContextManager[None]:
        carried.update(self.carried)
        return nullcontext()

    def running(
        self, kind: str, queue: str, carried: Mapping[str, str], attempt: int, /
    ) -> AbstractContextManager[None]:
        return nullcontext()


class App:
    """A queue whose handler notes which tenant it ran for."""

    def __init__(self, *carry: Carrier, store: MemoryStore | None = None, unique: Unique | None = None) -> None:
        self.clock = FakeClock()
        self.store = store or MemoryStore()
        self.queue = Queue(self.store, clock=self.clock, carry=carry or (CarryVar(tenant),))
        self.seen: list[str | None] = []

        @self.queue.handle("greet", unique=unique)
        async def greet(name: str) -> None:
            self.seen.append(tenant.get())

        self.greet: Kind[str] = greet

    async def push_as(self, who: str | None, value: str = "Ann", *, delay: float = 0) -> None:
        token = tenant.set(who)
        try:
            await self.greet.push(value, delay=delay)
        finally:
            tenant.reset(token)


def text_of(size: int) -> str:
    """A carried value with which the whole text has this size."""
    return "x" * (size - len('{"a":""}'))


async def test_a_variable_s_value_comes_along_to_the_run_and_no_further() -> None:
    app = App()
    await app.push_as("acme")
    await app.push_as(None)
    await app.push_as("initech", delay=0)
    assert await app.queue.drain() == 3
    assert app.seen == ["acme", None, "initech"]
    assert tenant.get() is None


async def test_a_variable_that_was_never_set_carries_nothing() -> None:
    app = App(CarryVar(unset), CarryVar(tenant))
    await app.greet.push("Ann")
    (job,) = await app.store.jobs(now=0)
    assert job.carried_text is None


async def test_a_variable_can_be_carried_by_another_name() -> None:
    app = App(CarryVar(tenant, name="who"))
    await app.push_as("acme")
    (job,) = await app.store.jobs(now=0)
    assert job.carried == {"who": "acme"}
    await app.queue.drain()
    assert app.seen == ["acme"]


async def test_the_later_of_two_carriers_overwrites_what_the_earlier_gave() -> None:
    app = App(CarryVar(tenant), Gives(tenant="later"))
    await app.push_as("acme")
    await app.queue.drain()
    assert app.seen == ["later"]


async def test_of_two_pushes_of_a_unique_job_the_first_s_stays() -> None:
    app = App(unique=Unique(latest=True))
    await app.push_as("first", delay=60)
    await app.push_as("second")
    await app.queue.drain()
    assert app.seen == ["first"]


async def test_a_store_that_keeps_nothing_carried_runs_the_job_without() -> None:
    class Bare(MemoryStore):
        keeps = frozenset(Keep) - {Keep.CARRIED}

    app = App(store=Bare())
    await app.push_as("acme")
    await app.queue.drain()
    assert app.seen == [None]


def test_what_is_not_a_variable_cannot_be_carried() -> None:
    with pytest.raises(OptionError, match=r"takes a contextvars\.ContextVar"):
        CarryVar("tenant")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def test_4096_bytes_are_carried() -> None:
    app = App(Gives(a=text_of(MAX_CARRIED_BYTES)))
    await app.greet.push("Ann")
    (job,) = await app.store.jobs(now=0)
    assert len(job.carried_text or "") == MAX_CARRIED_BYTES == 4096


async def test_4097_bytes_are_refused_and_nothing_is_kept() -> None:
    app = App(Gives(a=text_of(MAX_CARRIED_BYTES + 1)))
    with pytest.raises(CarriedTooLarge, match=r"'greet' would carry 4097 bytes and a job keeps at most 4096.*\(a\)"):
        await app.greet.push("Ann")
    assert await app.store.jobs(now=0) == []


@pytest.mark.parametrize("carried", [{"user": 7}, {"user": None}, {7: "user"}, {"user": b"7"}])
async def test_what_is_not_text_is_refused(carried: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="names and values as str"):
        carried_text("greet", carried)


def test_what_is_carried_has_one_text_whatever_the_order_and_is_ascii() -> None:
    assert carried_text("greet", {"b": "\u00e9", "a": "1"}) == carried_text("greet", {"a": "1", "b": "\u00e9"})
    assert carried_text("greet", {"b": "\u00e9", "a": "1"}) == '{"a":"1","b":"\\u00e9"}'
    assert carried_text("greet", {}) is None


@pytest.mark.parametrize(
    ("text", "carried"), [(None, {}), ("", {}), ("{", {}), ("[1]", {}), ('{"a":1,"b":"x"}', {"b": "x"})]
)
def test_what_the_database_gives_back_is_distrusted(text: str | None, carried: dict[str, str]) -> None:
    assert carried_of(text) == carried

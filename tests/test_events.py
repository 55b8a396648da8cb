"""Events: every listener of what happened is a job of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import BaseModel
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from fastqueue import Queue, constant
from fastqueue.errors import KindError, RegistrationError, StoreUnavailable, ValueRefused
from fastqueue.events import Events
from fastqueue.testing import FakeClock
from tests.worker.stage import Faulty


class OrderShipped(BaseModel):
    order: int


class OrderLost(OrderShipped):
    """A class below one that is listened to."""


@dataclass
class Paid:
    amount: float


class Shop:
    """Two listeners to one event, the first of which fails when its order is 13, and one to another event."""

    def __init__(self, store: str = "memory://") -> None:
        self.clock = FakeClock()
        self.queue = Queue(store, clock=self.clock)
        self.events = events = Events()
        self.heard: list[str] = []

        @events.handle("update-stock", attempts=2, backoff=constant(60))
        async def update_stock(event: OrderShipped) -> None:
            self.heard.append(f"stock {event.order}")
            if event.order == 13:
                raise RuntimeError("no such order")

        @events.handle("tell-the-buyer")
        async def tell_the_buyer(event: OrderShipped) -> None:
            self.heard.append(f"buyer {event.order}")

        @events.handle("book")
        async def book(event: Paid) -> None:
            self.heard.append(f"paid {event.amount}")

        self.queue.include(events)


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Shop]:
    shop = Shop(f"sqlite:///{tmp_path / 'shop.db'}")
    async with shop.queue:
        yield shop


async def test_each_listener_of_the_event_s_type_runs_as_a_job_of_its_own() -> None:
    shop = Shop()
    pushed = await shop.events.publish(OrderShipped(order=7))
    assert len({one.id for one in pushed}) == 2
    assert shop.heard == [], "nothing runs at the publisher's"
    assert await shop.queue.drain() == 2
    assert shop.heard == ["stock 7", "buyer 7"]


async def test_a_listener_that_fails_touches_no_other_and_is_tried_again_by_itself() -> None:
    shop = Shop()
    await shop.events.publish(OrderShipped(order=13))
    await shop.queue.drain()
    assert shop.heard == ["stock 13", "buyer 13"]
    shop.clock.move(60)
    await shop.queue.drain()
    assert shop.heard == ["stock 13", "buyer 13", "stock 13"]
    assert [job.kind for job in await shop.queue.failed()] == ["update-stock"]


async def test_an_event_is_heard_by_those_of_exactly_its_class() -> None:
    shop = Shop()
    assert await shop.events.publish(OrderLost(order=7)) == []
    await shop.events.publish(Paid(9.5))
    await shop.queue.drain()
    assert shop.heard == ["paid 9.5"]


async def test_an_event_that_nobody_listens_to_is_no_error() -> None:
    assert await Events().publish(OrderShipped(order=7)) == []
    assert Events().publish_sync(OrderShipped(order=7)) == []
    assert await Events().in_(None).publish(OrderShipped(order=7)) == []  # type: ignore[arg-type]


async def test_in_a_transaction_the_listeners_are_pushed_with_its_commit_or_not_at_all(
    shop: Shop, tmp_path: Path
) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'shop.db'}")
    async with AsyncSession(engine) as session:
        await session.execute(text("create table orders (n integer)"))
        await session.commit()
        await session.execute(text("insert into orders values (1)"))
        await shop.events.in_(session).publish(OrderShipped(order=1))
        await session.rollback()
        await session.execute(text("insert into orders values (2)"))
        pushed = await shop.events.in_(session).publish(OrderShipped(order=2))
        assert await shop.queue.drain() == 0
        await session.commit()
    await engine.dispose()
    assert len(pushed) == 2
    await shop.queue.drain()
    assert shop.heard == ["stock 2", "buyer 2"]


def test_a_sync_session_publishes_too(tmp_path: Path) -> None:
    shop = Shop(f"sqlite:///{tmp_path / 'shop.db'}")
    asyncio.run(shop.queue.drain())
    asyncio.run(shop.queue.close())
    engine = create_engine(f"sqlite:///{tmp_path / 'shop.db'}")
    with Session(engine) as session:
        session.execute(text("create table orders (n integer)"))
        shop.events.in_(session).publish_sync(OrderShipped(order=3))
        session.commit()
    engine.dispose()
    shop.events.publish_sync(OrderShipped(order=4))

    async def drain() -> None:
        async with shop.queue:
            await shop.queue.drain()

    asyncio.run(drain())
    assert sorted(shop.heard) == ["buyer 3", "buyer 4", "stock 3", "stock 4"]


async def test_all_listeners_are_pushed_or_none() -> None:
    class Down(Faulty):
        pushes = 0

        async def push(self, jobs: object, *, now: int) -> list[object]:  # type: ignore[override]
            self.pushes += 1
            raise StoreUnavailable("no route to it")

    store = Down()
    queue, events = Queue(store), Events()

    async def listen(event: Paid) -> None: ...

    for name in ("one", "two", "three"):
        events.handle(name, listen)
    queue.include(events)
    with pytest.raises(StoreUnavailable, match="no route to it"):
        await events.publish(Paid(1))
    assert store.pushes == 1, "one statement has them all"
    with pytest.raises(ValueRefused, match="kind 'one' cannot keep this value"):
        await events.publish(Paid(float("nan")))
    assert store.pushes == 1


async def test_on_an_inline_queue_a_failing_listener_keeps_no_other_from_the_event() -> None:
    shop = Shop("inline://")
    with pytest.raises(RuntimeError, match="no such order"):
        await shop.events.publish(OrderShipped(order=13))
    assert shop.heard == ["stock 13", "buyer 13"]


def test_a_listener_to_what_is_no_class_is_refused() -> None:
    events = Events()

    async def listen(event: OrderShipped | Paid) -> None: ...

    async def listen_closely(event: Annotated[OrderShipped, "closely"]) -> None: ...

    with pytest.raises(
        KindError, match=r"listener 'both' takes .* annotate its first parameter with the event's class"
    ):
        events.handle("both", listen)
    with pytest.raises(KindError, match="listener 'closely' takes"):
        events.handle("closely", listen_closely)
    assert list(events) == []


async def test_listeners_that_no_queue_includes_are_named() -> None:
    events = Events()

    @events.handle("update-stock")
    async def update_stock(event: OrderShipped) -> None: ...

    with pytest.raises(RegistrationError, match=r"'update-stock' belongs to no queue yet; queue\.include"):
        await events.publish(OrderShipped(order=7))
    with pytest.raises(RegistrationError, match="'update-stock' is there already"):
        events.kind("update-stock", OrderShipped)


async def test_a_listener_of_another_process_is_pushed_to() -> None:
    events, queue = Events(), Queue("memory://")
    events.kind("index", OrderShipped)
    queue.include(events)
    await events.publish(OrderShipped(order=7))
    assert [job.kind for job in await queue.store.jobs(now=0)] == ["index"]

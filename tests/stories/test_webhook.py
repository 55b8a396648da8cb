from pathlib import Path

import httpx
from fastapi import FastAPI
from pydantic import BaseModel
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from fastqueue import Queue


class Base(DeclarativeBase): ...


class Event(Base):
    """The events that have come, by the ids that the payment provider gave them."""

    __tablename__ = "events"
    id: Mapped[str] = mapped_column(primary_key=True)


class Paid(BaseModel):
    id: str
    order: int


async def test_a_webhook_that_is_delivered_twice_ships_the_order_once(tmp_path: Path) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/shop.db")
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    queue, app, shipped = Queue(f"sqlite:///{tmp_path}/shop.db"), FastAPI(), list[int]()

    @queue.handle("ship")
    async def ship(order: int) -> None:
        shipped.append(order)

    @app.post("/paid")
    async def paid(event: Paid) -> str:
        try:
            async with AsyncSession(engine) as db, db.begin():
                db.add(Event(id=event.id))
                await ship.in_(db).push(event.order)
        except IntegrityError:
            return "we know"
        return "thank you"

    site = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop")
    async with site, queue:
        answers = [await site.post("/paid", json={"id": "evt_1", "order": 7}) for _ in range(2)]
        assert [answer.json() for answer in answers] == ["thank you", "we know"]
        await queue.drain()

    assert shipped == [7]
    await engine.dispose()

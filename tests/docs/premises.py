"""What a page takes for granted that an app has: names that its programs use and do not make."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import asyncpg
from fastapi import Depends, FastAPI
from pydantic import BaseModel
from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from fastqueue import Queue
from fastqueue.fastapi import Jobs, health, lifespan, transactional
from fastqueue.stores import store_of

__all__ = ["PREMISES", "Base", "Order", "nothing", "registering"]

Names: TypeAlias = dict[str, Any]


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    state: Mapped[str]


class VerifyMail(BaseModel):
    user: int


@asynccontextmanager
async def nothing() -> AsyncGenerator[Names]:
    yield {}


@asynccontextmanager
async def an_app_with_a_queue(url: str = "sqlite:///premise.db") -> AsyncGenerator[Names]:
    queue = Queue(url)

    @queue.handle("verify-mail")
    async def verify_mail(job: VerifyMail) -> None: ...

    names = {
        "queue": queue,
        "app": FastAPI(),
        "FastAPI": FastAPI,
        "Queue": Queue,
        "lifespan": lifespan,
        "health": health,
        "verify_mail": verify_mail,
        "VerifyMail": VerifyMail,
    }
    async with queue:
        yield names


@asynccontextmanager
async def two_stores() -> AsyncGenerator[Names]:
    old, new = store_of("sqlite:///old.db"), store_of("sqlite:///new.db")
    await old.open()
    await new.open()
    yield {"old": old, "new": new}
    await old.close()
    await new.close()


@asynccontextmanager
async def the_first_program() -> AsyncGenerator[Names]:
    """The program of the README, of which the page shows the pieces."""
    found = re.search(r"```python\n(.*?)```", (Path(__file__).parents[2] / "README.md").read_text(), re.DOTALL)
    assert found
    names: Names = {}
    exec(compile(found[1], "README.md", "exec", dont_inherit=True), names)
    yield names
    await names["engine"].dispose()


class Register(BaseModel):
    email: str


@asynccontextmanager
async def registering(url: str) -> AsyncGenerator[Names]:
    """An app on PostgreSQL that lets people register, in a transaction that has begun."""
    engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:", 1))
    async with engine.begin() as connection:
        await connection.execute(text("CREATE TABLE users (id SERIAL PRIMARY KEY, email TEXT)"))

    async def session() -> AsyncGenerator[AsyncSession]:
        async with AsyncSession(engine) as db, db.begin():
            yield db

    async with an_app_with_a_queue(url) as names, AsyncSession(engine) as ours:
        names |= {
            "Annotated": Annotated,
            "AsyncGenerator": AsyncGenerator,
            "AsyncSession": AsyncSession,
            "Depends": Depends,
            "Jobs": Jobs,
            "Register": Register,
            "asyncpg": asyncpg,
            "create_async_engine": create_async_engine,
            "event": event,
            "form": Register(email="ada@example.org"),
            "db": ours,
            "session": session,
            "transactional": transactional,
            "user": Order(id=1),
        }
        await ours.begin()
        yield names
    await engine.dispose()


PREMISES: dict[str, Callable[[], AbstractAsyncContextManager[Names]]] = {
    "docs/command.md": an_app_with_a_queue,
    "docs/operating.md": an_app_with_a_queue,
    "docs/start.md": the_first_program,
    "docs/stores.md": two_stores,
}

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

from fastapi import Depends, FastAPI
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from fastqueue import Defaults, Queue
from fastqueue.fastapi import Jobs, lifespan, transactional


class Base(DeclarativeBase): ...


class User(Base):
    __tablename__ = "users"
    email: Mapped[str] = mapped_column(primary_key=True)


engine = create_async_engine("sqlite+aiosqlite:///shop.db")


async def session() -> AsyncIterator[AsyncSession]:
    async with AsyncSession(engine) as db, db.begin():
        await (await db.connection()).run_sync(Base.metadata.create_all)
        yield db


SessionDep = Annotated[AsyncSession, Depends(session, scope="function")]

# What a killed process held is taken over after two seconds here, and after two minutes by default.
queue = Queue("sqlite:///shop.db", defaults=Defaults(timeout=1, margin=1))
app = FastAPI(lifespan=lifespan(queue))
jobs = transactional(queue, SessionDep)


@queue.handle("welcome")
def welcome(email: str) -> None:
    if not Path("crashed").exists():
        Path("crashed").touch()
        os.kill(os.getpid(), signal.SIGKILL)  # the power fails before the mail is out
    with Path("outbox").open("a") as outbox:
        outbox.write(f"Welcome, {email}!\n")


@app.post("/register")
async def register(email: str, db: SessionDep, jobs: Annotated[Jobs, Depends(jobs)]) -> None:
    db.add(User(email=email))
    await jobs(welcome).push(email)

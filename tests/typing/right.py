"""What type checkers are to see; it is never run."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, assert_type

from fastapi import Depends, FastAPI
from pydantic import BaseModel, Field
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session

from fastqueue import Carrier, Kind, Kinds, Permanent, Pushed, Pushing, Queue, Ran, Run, cron, every
from fastqueue.fastapi import Jobs, RequestIDMiddleware, lifespan, transactional
from fastqueue.otel import CarryTrace, MeasureRuns
from fastqueue.starlette import CarryRequestID
from fastqueue.stores.memory import MemoryStore

queue = Queue("memory://", carry=[CarryRequestID(), CarryTrace()], observe=MeasureRuns())
kinds = Kinds()


class Mail(BaseModel):
    to: str


@queue.handle("mail", attempts=3, unique=True, timeout=None)
async def mail(value: Mail) -> None: ...


@kinds.handle("plain")
def plain(value: int | None) -> None: ...


@kinds.handle("with the run")
async def with_the_run(value: list[int], run: Run) -> None:
    assert_type(run.attempt, int)


@kinds.handle("constrained")
async def constrained(value: Annotated[int, Field(gt=0)]) -> None: ...


class Service:
    async def send(self, value: Mail) -> None: ...

    def __call__(self, value: Mail, run: Run) -> None: ...


assert_type(mail, Kind[Mail])
assert_type(plain, Kind[int | None])
assert_type(with_the_run, Kind[list[int]])
assert_type(constrained, Kind[int])
assert_type(queue.handle("method", Service().send), Kind[Mail])
assert_type(queue.handle("object", Service()), Kind[Mail])
assert_type(queue.kind("elsewhere", Mail), Kind[Mail])
assert_type(queue.kind("elsewhere, or none", int | None), Kind[int | None])


@mail.on_fail
async def gave_up(value: Mail, error: Exception) -> None: ...


@plain.on_fail
def gave_up_on_a_wider_type(value: object, error: BaseException) -> None: ...


mail.schedule(every(60), Mail(to="ada"))
plain.schedule(cron("@daily", tz="Europe/Paris"), None, name="daily", missed="skip")


async def pushes(session: AsyncSession, connection: AsyncConnection, jobs: Jobs) -> None:
    assert_type(await mail.push(Mail(to="ada"), delay=60, queue="slow"), Pushed)
    assert_type(await mail.push_many([Mail(to="ada")]), list[Pushed])
    for inside in (mail.in_(session), mail.in_(connection), mail.in_(MemoryStore()), jobs(mail)):
        assert_type(inside, Pushing[Mail])
        assert_type(await inside.push(Mail(to="ada")), Pushed)
    await mail(Mail(to="ada"))
    raise Permanent(LookupError("no such box"))


def pushes_sync(session: Session, connection: sqlite3.Connection) -> None:
    assert_type(mail.push_sync(Mail(to="ada")), Pushed)
    assert_type(mail.push_many_sync([Mail(to="ada")]), list[Pushed])
    assert_type(mail.in_(session).push_sync(Mail(to="ada")), Pushed)
    assert_type(mail.in_(connection).push_many_sync([Mail(to="ada")]), list[Pushed])


async def session_of_a_request() -> AsyncSession:
    raise NotImplementedError


SessionDep = Annotated[AsyncSession, Depends(session_of_a_request, scope="function")]
jobs_of_a_request = transactional(queue, SessionDep)
JobsDep = Annotated[Jobs, Depends(jobs_of_a_request)]
assert_type(jobs_of_a_request, Callable[..., Coroutine[Any, Any, Jobs]])

app = FastAPI(lifespan=lifespan(queue))
app.add_middleware(RequestIDMiddleware)


@app.post("/register")
async def register(form: Mail, db: SessionDep, jobs: JobsDep) -> None:
    assert_type(await jobs(mail).push(form), Pushed)


carriers: list[Carrier] = [CarryRequestID(), CarryTrace(parent=True)]
observe: Callable[[Ran], object] = MeasureRuns()

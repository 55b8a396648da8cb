"""Mistakes that both type checkers are to find; it is never run.

A comment that names an error which is no longer there is an error itself: see test_types.py.
"""

from __future__ import annotations

from pydantic import BaseModel
from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

from fastqueue import Kind, Queue, Run, every
from fastqueue.fastapi import Jobs

queue = Queue("memory://")


class Mail(BaseModel):
    to: str


class Other(BaseModel):
    to: str


@queue.handle("mail")
async def mail(value: Mail) -> None: ...


other = Other(to="ada")


async def a_wrong_value(session: AsyncSession, jobs: Jobs) -> None:
    await mail.push(other)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await mail.push(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await mail.push_many([other])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    await mail.push_many(Mail(to="ada"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    mail.push_sync(other)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    mail.push_many_sync([other])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    await mail.in_(session).push(other)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await mail.in_(session).push_many([other])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    await jobs(mail).push(other)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    jobs(mail).push_sync(other)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    mail.schedule(every(60), other)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await mail(other)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def a_wrong_option(session: AsyncSession) -> None:
    await mail.push(Mail(to="ada"), delay="60")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await mail.push(Mail(to="ada"), dely=60)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await mail.push(Mail(to="ada"), 60)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    mail.schedule("@daily", Mail(to="ada"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    mail.schedule(every(60), Mail(to="ada"), missed="all")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    queue.handle("unknown option", tries=3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    queue.handle("wrong option", attempts="3")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]


def a_wrong_transaction(engine: Engine, async_engine: AsyncEngine) -> None:
    mail.in_(engine)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    mail.in_(async_engine)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    mail.in_("sqlite://")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def a_push_that_is_not_awaited(jobs: Jobs) -> None:
    mail.push(Mail(to="ada"))  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
    jobs(mail).push(Mail(to="ada"))  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]


@queue.handle  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
async def no_name(value: Mail) -> None: ...


@queue.handle("no value")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue, reportUntypedFunctionDecorator]
async def no_value() -> None: ...


@queue.handle("wrong second parameter")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue, reportUntypedFunctionDecorator]
async def wrong_second_parameter(value: Mail, run: int) -> None: ...


@queue.handle("an answer")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue, reportUntypedFunctionDecorator]
async def an_answer(value: Mail) -> int:
    return 1


@mail.on_fail  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
async def another_value(value: Other, error: Exception) -> None: ...


@queue.handle("with the run")
async def with_the_run(value: Mail, run: Run) -> None:
    run.attempt = 2  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


kind: Kind[Other] = mail  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]

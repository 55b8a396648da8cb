"""A queue that runs each job inside its push."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from starlette.applications import Starlette

from fastqueue import CarryVar, Outcome, Queue, Ran, Run, Throttle, every
from fastqueue.errors import InlineDelay, Mismatch, OutOfTime, Permanent, RegistrationError, Unsupported
from fastqueue.fastapi import lifespan

SOON = 20.0


class App:
    """A queue whose one kind remembers what it was called with, and fails when it is asked to."""

    def __init__(self, **options: Any) -> None:
        self.seen: list[str] = []
        self.observed: list[Ran] = []
        self.gave_up: list[tuple[str, str]] = []
        self.queue = Queue("inline://", observe=self.observed.append, **options)

        @self.queue.handle("greet", attempts=5)
        async def greet(name: str, run: Run) -> None:
            self.seen.append(f"{name} {run.attempt} of {run.attempt + run.attempts_left}")
            if name == "bad":
                raise LookupError("nobody of that name")

        @greet.on_fail
        def gave_up(name: str, error: Exception) -> None:
            self.gave_up.append((name, str(error)))

        self.greet = greet


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[AsyncSession]:
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'app.db'}")
    async with AsyncSession(engine) as session:
        yield session
    await engine.dispose()


async def test_a_job_has_run_when_its_push_is_over() -> None:
    app = App()
    pushed = await app.greet.push("Ann")
    assert pushed.new
    assert app.seen == ["Ann 1 of 1"]
    assert [ran.outcome for ran in app.observed] == [Outcome.DONE]
    assert await app.queue.drain() == 0


def test_push_sync_runs_the_job_too() -> None:
    app = App()
    app.greet.push_sync("Ann")
    assert app.seen == ["Ann 1 of 1"]


async def test_a_plain_handler_runs_in_a_thread_and_may_push_itself() -> None:
    app = App()

    @app.queue.handle("relay")
    def relay(name: str) -> None:
        app.greet.push_sync(name)

    await relay.push("Ann")
    assert app.seen == ["Ann 1 of 1"]


async def test_the_error_of_the_job_is_the_error_of_the_push_and_there_is_no_second_attempt(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = App()
    with pytest.raises(LookupError, match="nobody of that name"):
        await app.greet.push("bad")
    assert app.seen == ["bad 1 of 1"]
    assert [ran.outcome for ran in app.observed] == [Outcome.FAILED]
    assert app.gave_up == [("bad", "nobody of that name")]
    assert "a job failed for good: kind=greet" in caplog.text


async def test_of_several_all_run_before_the_first_error_is_raised() -> None:
    app = App()
    with pytest.raises(LookupError):
        await app.greet.push_many(["Ann", "bad", "Cid"])
    assert app.seen == ["Ann 1 of 1", "bad 1 of 1", "Cid 1 of 1"]


async def test_a_value_goes_through_json_as_it_does_on_every_store() -> None:
    queue, seen = Queue("inline://"), list[list[int]]()

    @queue.handle("sum")
    async def add(numbers: list[int]) -> None:
        seen.append(numbers)

    numbers = [1, 2]
    await add.push(numbers)
    assert seen == [numbers]
    assert seen[0] is not numbers


@pytest.mark.parametrize("later", [{"delay": 0.001}, {"at": datetime.now(UTC) + timedelta(hours=1)}])
async def test_a_delay_is_refused_and_nothing_is_run(later: dict[str, Any], session: AsyncSession) -> None:
    app = App()
    with pytest.raises(InlineDelay, match=r"push of 'greet': due in .* use memory:// and drain\(\)"):
        await app.greet.push_many(["Ann", "Bob"], **later)
    with pytest.raises(InlineDelay):
        await app.greet.in_(session).push("Ann", **later)
    await session.commit()
    assert app.seen == []


async def test_a_time_that_is_past_means_at_once() -> None:
    app = App()
    await app.greet.push("Ann", at=datetime(2020, 1, 1, tzinfo=UTC))
    await app.greet.push("Bob", delay=0)
    assert len(app.seen) == 2


def test_what_needs_a_line_to_wait_in_is_refused_when_it_is_registered() -> None:
    app = App()

    async def nothing(_: None) -> None: ...

    with pytest.raises(Unsupported, match="the inline store does not keep schedules"):
        app.greet.schedule(every(60), "Ann")
    with pytest.raises(Unsupported, match="the inline store does not keep at most n at once"):
        app.queue.handle("one", nothing, at_once=1)
    with pytest.raises(Unsupported, match="the inline store does not keep holding a kind back"):
        app.queue.handle("two", nothing, rate=Throttle(1, 1))


async def test_a_kind_that_is_handled_elsewhere_is_refused_at_the_push() -> None:
    kind = Queue("inline://").kind("greet", str)
    with pytest.raises(RegistrationError, match="its handler is elsewhere"):
        await kind.push("Ann")


async def test_the_time_limit_holds() -> None:
    queue = Queue("inline://")

    @queue.handle("wait", timeout=0.01)
    async def wait(_: None) -> None:
        await asyncio.Event().wait()

    with pytest.raises(OutOfTime, match=r"its limit is 0\.01 s"):
        await asyncio.wait_for(wait.push(None), SOON)


async def test_cancelling_the_push_cancels_the_job() -> None:
    queue, begun, ended = Queue("inline://"), asyncio.Event(), asyncio.Event()

    @queue.handle("wait")
    async def wait(_: None) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    push = asyncio.create_task(wait.push(None))
    await asyncio.wait_for(begun.wait(), SOON)
    push.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(push, SOON)
    assert ended.is_set()


async def test_the_job_sees_what_is_carried_and_nothing_else_of_its_pusher_s_context() -> None:
    carried = contextvars.ContextVar[str | None]("carried", default=None)
    left = contextvars.ContextVar[str | None]("left", default=None)
    queue, seen = Queue("inline://", carry=[CarryVar(carried)]), list[str | None]()

    @queue.handle("look")
    async def look(_: None) -> None:
        seen.extend((carried.get(), left.get()))

    carried.set("brought")
    left.set("behind")
    await look.push(None)
    assert seen == ["brought", None]


async def test_in_a_transaction_the_job_runs_after_the_commit_and_its_error_is_logged(
    session: AsyncSession, caplog: pytest.LogCaptureFixture
) -> None:
    app = App()
    await session.execute(text("create table t (n int)"))
    await app.greet.in_(session).push("bad")
    await app.greet.in_(session).push("Ann")
    assert app.seen == []
    await session.commit()
    await app.queue.close()
    assert sorted(app.seen) == ["Ann 1 of 1", "bad 1 of 1"]
    (line,) = [record for record in caplog.records if "after their commit" in record.getMessage()]
    assert line.levelno == logging.ERROR
    assert line.exc_info is not None
    assert isinstance(line.exc_info[1], LookupError)


async def test_in_a_transaction_that_is_rolled_back_the_job_never_runs(session: AsyncSession) -> None:
    app = App()
    await session.execute(text("select 1"))
    await app.greet.in_(session).push("Ann")
    await session.rollback()
    await session.execute(text("select 1"))
    await session.commit()
    await app.queue.close()
    assert app.seen == []


async def test_an_error_that_is_permanent_or_a_mismatch_comes_out_as_it_is() -> None:
    queue = Queue("inline://")

    @queue.handle("refuse")
    async def refuse(error: str) -> None:
        raise Permanent(error) if error == "permanent" else Mismatch(error)

    with pytest.raises(Permanent):
        await refuse.push("permanent")
    with pytest.raises(Mismatch):
        await refuse.push("mismatch")


async def test_no_worker_runs_beside_the_server() -> None:
    queue = Queue("inline://")
    app = Starlette(lifespan=lifespan(queue))
    async with app.router.lifespan_context(app):
        assert queue.worker is None
        assert (await queue.health()).ready


async def test_a_store_that_joins_nothing_is_pushed_to_after_a_commit_though_nothing_has_opened_it(
    session: AsyncSession,
) -> None:
    queue = Queue("memory://")
    kind = queue.kind("greet", str)
    await session.execute(text("select 1"))
    await kind.in_(session).push("Ann")
    await session.commit()
    await queue.close()
    assert [job.payload for job in await queue.store.jobs(now=0)] == ['"Ann"']

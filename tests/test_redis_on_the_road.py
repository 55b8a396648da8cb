"""A queue on Redis: jobs from their push to their end, over several instances, and beside the app's own database."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from fastqueue import Kind, Outcome, Permanent, Queue, Ran, Throttle, Unique, constant, every
from fastqueue.errors import StoreUnavailable, Unsupported
from fastqueue.testing import FakeClock
from tests.servers import redis
from tests.servers.throwaway import free_port, sandbox
from tests.stores.redis_jobs import binary, misplaced
from tests.worker.stage import Observed, running, soon, stopped, until

AN_HOUR = 3600.0


async def nothing_left(url: str) -> bool:
    async with Redis.from_url(url, decode_responses=True, protocol=2) as admin:
        assert await misplaced(admin) == []
        return not await admin.exists("{fastqueue}:ids")


async def test_jobs_end_in_every_way_that_they_can(redis_url: str) -> None:
    ran = Observed()
    queue = Queue(redis_url, observe=ran)
    told: list[str] = []

    @queue.handle("note", attempts=2, backoff=constant(0))
    async def note(text: str) -> None:
        told.append(text)
        if text == "permanent":
            raise Permanent("no such place")
        if text == "again" and told.count("again") == 1:
            raise ValueError("not yet")

    async with queue, running(queue):
        await note.push_many(["done", "permanent", "again"])
        ends = [await ran.next() for _ in range(4)]
        assert sorted(each.outcome for each in ends) == ["done", "done", "failed", "retried"]
        [failed] = await queue.failed()
        assert failed.error is not None
        assert "no such place" in failed.error
        assert await queue.run_again(failed.id)
        assert (await ran.next()).outcome is Outcome.FAILED
        assert await queue.forget(failed.id)
    assert await nothing_left(redis_url)


async def test_a_push_by_one_instance_is_run_by_another_long_before_its_poll(redis_url: str) -> None:
    ran = Observed()
    pushing, working = Queue(redis_url), Queue(redis_url, poll=AN_HOUR, observe=ran)
    here, there = (queue.handle("note", note) for queue in (pushing, working))
    assert here.name == there.name
    async with pushing, working, running(working):
        await until(lambda: is_up(working))
        await here.push("at once")
        assert (await ran.next()).outcome is Outcome.DONE


async def note(text: str) -> None: ...


async def is_up(queue: Queue) -> bool:
    assert queue.store.wakes is not None
    return queue.store.wakes.up


async def is_said(words: str, caplog: pytest.LogCaptureFixture) -> bool:
    return words in caplog.text


async def is_new(kind: Kind[Any], value: object) -> bool:
    return (await kind.push(value)).new


async def test_limits_hold_over_two_instances(redis_url: str) -> None:
    at_work: dict[str, int] = {"few": 0, "alone": 0}
    most = dict(at_work)
    ran: list[Ran] = []
    over = asyncio.Event()

    def observe(run: Ran) -> None:
        ran.append(run)
        if sum(each.outcome is Outcome.DONE for each in ran) == 40:
            over.set()

    async def work(kind: str) -> None:
        at_work[kind] += 1
        most[kind] = max(most[kind], at_work[kind])
        await asyncio.sleep(0.002)
        at_work[kind] -= 1

    queues = [Queue(redis_url, workers=8, observe=observe) for _ in range(2)]
    for queue in queues:

        @queue.handle("few", at_once=3)
        async def few(number: int) -> None:
            await work("few")

        @queue.handle("alone", unique=Unique(one_at_a_time=True, by=lambda number: "all"), attempts=1)
        async def alone(number: int) -> None:
            await work("alone")

    async with queues[0], queues[1], running(queues[0]), running(queues[1]):
        kinds = queues[0].kinds
        await kinds["few"].push_many(range(30))
        for number in range(10):
            await until(partial(is_new, kinds["alone"], number))
        await soon(over.wait())
    assert most == {"few": 3, "alone": 1}
    assert await nothing_left(redis_url)


async def test_a_rate_is_counted_for_all_instances(redis_url: str) -> None:
    clock = FakeClock()
    ran: list[Ran] = []
    queues = [Queue(redis_url, clock=clock, observe=ran.append) for _ in range(2)]
    for queue in queues:
        queue.handle("note", note, rate=Throttle(3, 60))
    async with queues[0], queues[1]:
        await queues[0].kinds["note"].push_many(map(str, range(5)))
        for queue in queues:
            await queue.drain()
        assert [run.outcome for run in ran].count(Outcome.DONE) == 3
        clock.move(timedelta(seconds=61))
        for queue in queues:
            await queue.drain()
        assert [run.outcome for run in ran].count(Outcome.DONE) == 5


async def test_a_schedule_s_run_is_pushed_once_by_two_instances(redis_url: str) -> None:
    ran: list[Ran] = []
    over = asyncio.Event()

    def observe(run: Ran) -> None:
        ran.append(run)
        if len(ran) == 3:
            over.set()

    queues = [Queue(redis_url, observe=observe) for _ in range(2)]
    for queue in queues:
        queue.handle("note", note).schedule(every(0.2), "tick")
    async with queues[0], queues[1]:
        async with running(queues[0]), running(queues[1]):
            await soon(over.wait())
        assert queues[0].store.schedules is not None
        assert set(await queues[0].store.schedules.recorded()) == {"note"}
    moments = [run.id for run in ran]
    assert len(moments) == len(set(moments))


async def test_a_queue_goes_on_after_its_server_was_killed_and_started_again(caplog: pytest.LogCaptureFixture) -> None:
    port, ran = free_port(), Observed()
    log = ("--appendonly", "yes", "--appendfsync", "always")
    with sandbox() as box:
        with redis.serving(binary(), box, port, *log) as url:
            queue = Queue(url, poll=0.05, observe=ran)
            kind = queue.handle("note", note)
            await queue.ready()
            task = asyncio.create_task(queue.run())
            await kind.push("before")
            assert (await ran.next()).outcome is Outcome.DONE
            await kind.push("in between", delay=0.5)
            async with Redis.from_url(url) as admin:
                os.kill((await admin.info("server"))["process_id"], signal.SIGKILL)
            await until(lambda: is_said("a claim failed", caplog))
            with pytest.raises(StoreUnavailable):
                await kind.push("lost")
        with redis.serving(binary(), box, port, *log):
            assert (await ran.next()).outcome is Outcome.DONE
            await kind.push("after")
            assert (await ran.next()).outcome is Outcome.DONE
            await stopped(task)
            await queue.close()


class TestBesideADatabase:
    """Pushes by the app's own session: Redis has no part in its transaction, so they go out after the commit."""

    @pytest.fixture
    async def session(self, tmp_path: Path) -> AsyncGenerator[AsyncSession]:
        engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'app.db'}")
        async with AsyncSession(engine) as session:
            await session.execute(text("CREATE TABLE users (name TEXT)"))
            await session.commit()
            yield session
        await engine.dispose()

    @pytest.fixture
    async def kind(self, redis_url: str) -> AsyncGenerator[Kind[str]]:
        queue = Queue(redis_url)
        async with queue:
            yield queue.handle("note", note)

    async def values(self, url: str) -> list[str]:
        queue = Queue(url)
        async with queue:
            return [job.payload for job in await queue.store.jobs(now=0)]

    async def add_user(self, session: AsyncSession) -> None:
        await session.execute(text("INSERT INTO users VALUES ('Ada')"))

    async def pushed(self, kind: Kind[str]) -> None:
        """Wait for the pushes that follow a commit: closing does."""
        road = kind._road
        assert isinstance(road, Queue)
        await road.close()

    async def test_they_go_out_right_after_the_commit(
        self, session: AsyncSession, kind: Kind[str], redis_url: str
    ) -> None:
        await self.add_user(session)
        await kind.in_(session).push("one")
        await kind.in_(session).push_many(["two", "three"])
        assert await self.values(redis_url) == []
        await session.commit()
        await self.pushed(kind)
        assert sorted(await self.values(redis_url)) == ['"one"', '"three"', '"two"']

    async def test_they_never_go_out_after_a_rollback(
        self, session: AsyncSession, kind: Kind[str], redis_url: str
    ) -> None:
        await self.add_user(session)
        await kind.in_(session).push("gone")
        await session.rollback()
        async with session.begin():
            await self.add_user(session)
            savepoint = await session.begin_nested()
            await kind.in_(session).push("gone too")
            await savepoint.rollback()
            await kind.in_(session).push("kept")
        await kind.in_(session).push("gone with the session")
        await session.close()
        await self.pushed(kind)
        assert await self.values(redis_url) == ['"kept"']

    async def test_a_commit_that_fails_takes_them_along(
        self, session: AsyncSession, kind: Kind[str], redis_url: str
    ) -> None:
        await session.execute(text("PRAGMA foreign_keys = ON"))
        await session.execute(text("CREATE TABLE a (id INTEGER PRIMARY KEY)"))
        deferred = "CREATE TABLE b (a INTEGER REFERENCES a (id) DEFERRABLE INITIALLY DEFERRED)"
        await session.execute(text(deferred))
        await session.commit()
        await session.execute(text("INSERT INTO b VALUES (1)"))
        await kind.in_(session).push("gone")
        with pytest.raises(Exception, match="FOREIGN KEY constraint failed"):
            await session.commit()
        await session.rollback()
        await self.pushed(kind)
        assert await self.values(redis_url) == []

    async def test_one_that_cannot_be_kept_then_is_told_in_the_log(
        self, session: AsyncSession, caplog: pytest.LogCaptureFixture
    ) -> None:
        with redis.launched(binary()) as url:
            queue = Queue(url)
            kind = queue.handle("note", note)
            await queue.ready()
        await self.add_user(session)
        await kind.in_(session).push("lost")
        await session.commit()
        await queue.close()
        [record] = [record for record in caplog.records if record.levelname == "ERROR"]
        assert record.getMessage() == "1 jobs could not be pushed after their commit"
        assert (await session.execute(text("SELECT count(*) FROM users"))).scalar() == 1

    async def test_a_connection_that_tells_of_no_commit_is_refused(
        self, session: AsyncSession, kind: Kind[str]
    ) -> None:
        with pytest.raises(Unsupported, match=r"the redis store joins no transactions, .* push after the commit"):
            await kind.in_(await session.connection()).push("nowhere")

"""The queue that tests of apps are given."""

import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
from asgi_lifespan import LifespanManager
from fastapi import Depends, FastAPI
from pydantic import BaseModel
from sqlalchemy import Connection, event, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, create_async_engine

from fastqueue import Kind, Queue, Unique, constant, every
from fastqueue.errors import RegistrationError, Unsupported
from fastqueue.fastapi import Jobs, lifespan, transactional
from fastqueue.testing import FakeClock, FakeQueue
from tests.worker.stage import running


class Welcome(BaseModel):
    user: int


class App:
    """Kinds on a queue, and what ran."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.ran: list[str] = []

        @queue.handle("welcome", unique=Unique(one_at_a_time=True), at_once=2)
        async def welcome(job: Welcome) -> None:
            self.ran.append(f"welcome {job.user}")

        @queue.handle("greet", attempts=2, backoff=constant(60))
        async def greet(name: str) -> None:
            self.ran.append(name)
            if name == "bad":
                raise LookupError(name)

        self.welcome: Kind[Welcome] = welcome
        self.greet: Kind[str] = greet


async def test_what_was_pushed_is_remembered_as_values_and_runs_on_demand(fake_queue: FakeQueue) -> None:
    app = App(fake_queue)
    await app.welcome.push(Welcome(user=1))
    await app.greet.push_many(["Ann", "Bob"])
    assert fake_queue.pushed(app.welcome) == [Welcome(user=1)]
    assert fake_queue.pushed("greet") == ["Ann", "Bob"]
    assert app.ran == []
    assert await fake_queue.drain() == 3
    assert app.ran == ["welcome 1", "Ann", "Bob"]
    assert fake_queue.pushed(app.greet) == ["Ann", "Bob"], "what has run is remembered too"


async def test_a_delayed_job_is_taken_and_runs_when_the_clock_has_come_to_it(
    fake_queue: FakeQueue, fake_clock: FakeClock
) -> None:
    app = App(fake_queue)
    await app.greet.push("bad", delay=timedelta(hours=1), queue="mail")
    (job,) = fake_queue.pushed_jobs(app.greet)
    assert (job.queue, job.run_at - fake_queue.clock.now()) == ("mail", 3_600_000)
    assert await fake_queue.drain() == 0
    fake_clock.move(3600)
    assert await fake_queue.drain() == 1
    fake_queue.fake_clock.move(60)
    assert await fake_queue.drain() == 1
    assert [job.error for job in await fake_queue.failed()] == ["bad"]


async def test_a_push_that_finds_its_job_waiting_adds_none(fake_queue: FakeQueue) -> None:
    app = App(fake_queue)
    for _ in range(2):
        await app.welcome.push(Welcome(user=1))
    assert fake_queue.pushed(app.welcome) == [Welcome(user=1)]


async def test_schedules_are_taken_and_push_nothing_by_themselves(fake_queue: FakeQueue) -> None:
    app = App(fake_queue)
    app.greet.schedule(every(60), "Ann")
    assert await fake_queue.drain() == 0
    assert fake_queue.pushed(app.greet) == []


async def test_a_failing_assertion_tells_what_was_pushed(fake_queue: FakeQueue) -> None:
    app = App(fake_queue)
    await app.welcome.push(Welcome(user=1))
    await app.greet.push("Ann")
    await app.greet.push("Bob")
    fake_queue.assert_pushed(app.greet, "Ann", "Bob")
    with pytest.raises(AssertionError) as told:
        fake_queue.assert_pushed(app.welcome, Welcome(user=2))
    assert str(told.value).splitlines() == [
        "of 'welcome' was expected",
        "    Welcome(user=2)",
        "and was pushed",
        "    Welcome(user=1)",
        "of other kinds: 'greet' 2 times",
    ]
    with pytest.raises(AssertionError) as told:
        fake_queue.assert_nothing_pushed()
    assert str(told.value).splitlines() == [
        "nothing was expected, and was pushed",
        '    welcome {"user":1}',
        '    greet "Ann"',
        '    greet "Bob"',
    ]


def test_nothing_pushed_is_asserted_and_told() -> None:
    queue = FakeQueue()
    app = App(queue)
    queue.assert_nothing_pushed()
    queue.assert_pushed(app.greet)
    with pytest.raises(AssertionError, match=r"of 'greet' was expected\n    'Ann'\nand was pushed\n    nothing$"):
        queue.assert_pushed(app.greet, "Ann")


def test_a_kind_that_is_not_the_queue_s_is_no_silent_nothing() -> None:
    queue = FakeQueue()
    App(queue)
    with pytest.raises(RegistrationError, match="the queue has no kind 'greed' like this; did you mean 'greet'"):
        queue.pushed("greed")
    with pytest.raises(RegistrationError, match="the queue has no kind 'greet' like this"):
        queue.pushed(App(FakeQueue()).greet)


async def test_a_fake_takes_the_place_of_an_app_s_own_queue_and_leaves_it_as_it_was(
    fake_in_place_of: Callable[[Queue], FakeQueue], tmp_path: Path
) -> None:
    app = App(Queue(f"sqlite:///{tmp_path / 'app.db'}"))
    with FakeQueue.in_place_of(app.queue) as fake:
        await app.greet.push("Ann")
        assert fake.pushed(app.greet) == ["Ann"]
        assert await fake.drain() == 1
    assert app.ran == ["Ann"]
    assert not (tmp_path / "app.db").exists()
    assert app.queue.store.name == "sqlite"
    fake_in_place_of(app.queue)
    assert app.queue.store.name == "fake"


async def test_a_queue_that_runs_is_left_alone() -> None:
    app = App(Queue("memory://"))
    async with running(app.queue):
        while app.queue.worker is None:
            await app.queue.ready()
        with pytest.raises(RegistrationError, match="put the fake in its place before the app starts"):
            FakeQueue.in_place_of(app.queue).__enter__()


async def test_a_lifespan_starts_no_workers_for_it(fake_queue: FakeQueue) -> None:
    app = FastAPI(lifespan=lifespan(fake_queue))
    async with LifespanManager(app):
        assert fake_queue.worker is None


def let_events_begin(raw: Any, _: object) -> None:
    raw.isolation_level = None


def begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


@pytest.fixture
async def connection(tmp_path: Path) -> AsyncGenerator[AsyncConnection]:
    """A connection in the test's own transaction, which is rolled back at its end."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'app.db'}")
    event.listen(engine.sync_engine, "connect", let_events_begin)
    event.listen(engine.sync_engine, "begin", begin)
    async with engine.connect() as connection:
        await connection.begin()
        await connection.execute(text("create table users (id integer primary key)"))
        yield connection
        await connection.rollback()
        assert not (await connection.execute(text("select name from sqlite_master"))).all()
    await engine.dispose()


async def test_pushes_and_their_jobs_share_the_transaction_that_the_test_rolls_back(
    connection: AsyncConnection, fake_queue: FakeQueue
) -> None:
    def sessions() -> AsyncSession:
        return AsyncSession(connection, join_transaction_mode="create_savepoint")

    async def session() -> AsyncGenerator[AsyncSession]:
        async with sessions() as db, db.begin():
            yield db

    jobs = transactional(fake_queue, Annotated[AsyncSession, Depends(session, scope="function")])
    app, seen = FastAPI(), list[int]()

    @fake_queue.handle("count")
    async def count(user: int) -> None:
        async with sessions() as db:
            seen.append(len((await db.execute(text("select id from users"))).all()))

    async def register(
        user: int,
        db: Annotated[AsyncSession, Depends(session, scope="function")],
        jobs: Annotated[Jobs, Depends(jobs)],
    ) -> None:
        await db.execute(text("insert into users values (:id)"), {"id": user})
        await jobs(count).push(user)
        fake_queue.assert_nothing_pushed()
        if user == 13:
            raise RuntimeError

    app.post("/register")(register)
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        assert (await client.post("/register", params={"user": 13})).status_code == 500
        fake_queue.assert_nothing_pushed()
        assert (await client.post("/register", params={"user": 7})).status_code == 200
    fake_queue.assert_pushed(count, 7)
    await fake_queue.drain()
    assert seen == [1], "the handler sees what the request has written, before anything is committed for good"


async def test_a_handle_that_cannot_tell_of_its_commit_is_refused(
    connection: AsyncConnection, fake_queue: FakeQueue
) -> None:
    app = App(fake_queue)
    with pytest.raises(Unsupported, match="the fake store joins no transactions"):
        await app.greet.in_(connection).push("Ann")


def test_the_plugin_costs_nothing_where_it_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(
        "import sys\n\ndef test_it():\n    assert not [name for name in sys.modules if name.startswith('fastqueue.')]\n"
        "    assert 'fastqueue_pytest' in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_other.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout

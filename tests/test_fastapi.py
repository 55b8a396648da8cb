"""A job is kept with the transaction of the request that pushed it: the dependency, in routes of every sort."""

# FastAPI reads annotations here that only the functions around them know: no future import.

import asyncio
import logging
import sqlite3
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from inspect import signature
from typing import Annotated, Any

import httpx
import pytest
import sqlmodel
from fastapi import APIRouter, BackgroundTasks, Depends, FastAPI, HTTPException, WebSocket
from fastapi.exceptions import ResponseValidationError
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.pool import NullPool
from starlette.types import Message, Receive, Scope, Send

from fastqueue.errors import OptionError, RegistrationError, TransactionEnded, TwoTransactions, ValueRefused, WrongPlace
from fastqueue.fastapi import Jobs, lifespan, transactional
from fastqueue.kind import Kind
from fastqueue.kinds import Kinds
from fastqueue.pushing import Pushing
from fastqueue.queue import Queue
from fastqueue.stores.sqlite import SQLiteStore
from tests.handles import begin_immediate, path_of, sync_engine


class Site:
    """An app with a database, a queue in it, and a log of what happened in which order."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.log: list[str] = []
        self.ran = asyncio.Event()
        self.app = FastAPI()
        self.store = SQLiteStore(path_of(url), synchronous="NORMAL")
        self.queue = Queue(self.store)
        self.mail = self.queue.handle("mail", self._send)
        self.engine = create_async_engine(url.replace("sqlite", "sqlite+aiosqlite"), poolclass=NullPool)
        begin_immediate(self.engine)

    async def _send(self, number: int) -> None:
        self.log.append(f"job {number}")
        self.ran.set()

    async def session(self) -> AsyncGenerator[AsyncSession]:
        """The way of most apps: committed when the request went well."""
        async with AsyncSession(self.engine) as session:
            self.log.append("begin")
            yield session
            await self.commit(session)

    async def commit(self, session: AsyncSession) -> None:
        await session.commit()
        self.log.append("commit")

    def plain_session(self) -> Generator[sqlmodel.Session]:
        """The way of FastAPI's tutorial: the routes commit."""
        with sync_engine(self.url, "pysqlite") as engine, sqlmodel.Session(engine) as session:
            yield session

    @asynccontextmanager
    async def client(self, *, raises: bool = True) -> AsyncGenerator[httpx.AsyncClient]:
        transport = httpx.ASGITransport(self._noting_responses, raise_app_exceptions=raises)
        async with httpx.AsyncClient(transport=transport, base_url="http://site") as client:
            yield client

    async def post(self, path: str = "/", *, raises: bool = True) -> int:
        """The status of a request's response."""
        async with self.client(raises=raises) as client:
            return (await client.post(path)).status_code

    async def _noting_responses(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.log.append("response")
            await send(message)

        await self.app(scope, receive, noting)

    @property
    def kept(self) -> list[int]:
        """What was pushed and committed."""
        with sync_engine(self.url, "pysqlite") as engine, engine.connect() as connection:
            return [int(payload) for payload in connection.scalars(text("SELECT payload FROM fastqueue_jobs"))]


@pytest.fixture
async def site(sqlite_url: str) -> AsyncGenerator[Site]:
    site = Site(sqlite_url)
    async with site.queue:
        yield site


@pytest.fixture
def app(site: Site) -> FastAPI:
    return site.app


class TestTheCommit:
    async def test_comes_before_the_response(self, site: Site, app: FastAPI) -> None:
        marker = Depends(site.session, scope="function")
        jobs = transactional(site.queue, Annotated[AsyncSession, marker])

        @app.post("/")
        async def register(db: Annotated[AsyncSession, marker], jobs: Annotated[Jobs, Depends(jobs)]) -> None:
            await jobs(site.mail).push(1)
            await jobs(site.mail).push(2)
            site.log.append("handler")

        assert await site.post() == 200
        assert site.log == ["begin", "handler", "commit", "response"]
        assert site.kept == [1, 2]

    async def test_comes_after_the_response_with_the_default_scope(self, site: Site, app: FastAPI) -> None:
        marker = Depends(site.session)
        jobs = transactional(site.queue, Annotated[AsyncSession, marker])

        @app.post("/")
        async def register(
            db: Annotated[AsyncSession, marker], jobs: Annotated[Jobs, Depends(jobs)], after: BackgroundTasks
        ) -> None:
            await jobs(site.mail).push(1)

            async def later() -> None:
                site.log.append("background")
                await jobs(site.mail).push(2)

            after.add_task(later)

        assert await site.post() == 200
        assert site.log == ["begin", "response", "background", "commit"]
        assert site.kept == [1, 2]

    @pytest.mark.parametrize(("scope", "status"), [("function", 500), ("request", 200)])
    async def test_that_fails_is_told_to_the_client_with_function_scope_alone(
        self, site: Site, app: FastAPI, scope: Any, status: int
    ) -> None:
        async def fail(session: AsyncSession) -> None:
            raise ConnectionError("the database went away")

        site.commit = fail  # type: ignore[method-assign]
        marker = Depends(site.session, scope=scope)
        jobs = transactional(site.queue, Annotated[AsyncSession, marker])

        @app.post("/")
        async def register(jobs: Annotated[Jobs, Depends(jobs)]) -> None:
            await jobs(site.mail).push(1)

        assert await site.post(raises=False) == status
        assert site.kept == []

    @pytest.mark.parametrize("scope", ["function", "request"])
    async def test_never_comes_when_the_request_fails(self, site: Site, app: FastAPI, scope: Any) -> None:
        marker = Depends(site.session, scope=scope)
        jobs = transactional(site.queue, Annotated[AsyncSession, marker])

        @app.post("/refuses")
        async def refuse(jobs: Annotated[Jobs, Depends(jobs)]) -> None:
            await jobs(site.mail).push(1)
            raise HTTPException(409)

        @app.post("/breaks")
        async def break_(jobs: Annotated[Jobs, Depends(jobs)]) -> None:
            await jobs(site.mail).push(1)
            raise ZeroDivisionError

        @app.post("/answers-wrongly")
        async def answer_wrongly(jobs: Annotated[Jobs, Depends(jobs)]) -> int:
            await jobs(site.mail).push(1)
            return "no number"  # type: ignore[return-value]  # pyright: ignore[reportReturnType]

        assert await site.post("/refuses") == 409
        assert await site.post("/breaks", raises=False) == 500
        with pytest.raises(ResponseValidationError):
            await site.post("/answers-wrongly")
        assert site.kept == []
        assert "commit" not in site.log

    async def test_takes_savepoints_along(self, site: Site, app: FastAPI) -> None:
        marker = Depends(site.session, scope="function")
        jobs = transactional(site.queue, Annotated[AsyncSession, marker])

        @app.post("/")
        async def register(db: Annotated[AsyncSession, marker], jobs: Annotated[Jobs, Depends(jobs)]) -> None:
            async with db.begin_nested():
                await jobs(site.mail).push(1)
            assert site.kept == []
            async with db.begin_nested() as savepoint:
                await jobs(site.mail).push(2)
                await savepoint.rollback()

        assert await site.post() == 200
        assert site.kept == [1]

    async def test_lets_a_client_find_what_it_was_answered_at_once(self, site: Site, app: FastAPI) -> None:
        marker = Depends(site.session, scope="function")
        jobs = transactional(site.queue, Annotated[AsyncSession, marker])

        @app.post("/")
        async def register(jobs: Annotated[Jobs, Depends(jobs)]) -> int:
            return (await jobs(site.mail).push(1)).id

        async with site.client() as client:
            for _ in range(50):
                made = (await client.post("/")).json()
                assert made in {job.id for job in await site.store.jobs(now=0, after=made - 1)}


class TestTheSession:
    """Whatever the app's dependency is, the routes and their jobs have one session."""

    async def shared(
        self, site: Site, jobs: Any, alias: Any, *, of: Callable[[Any], Any] = lambda value: value
    ) -> None:
        async def further(jobs: Annotated[Jobs, Depends(jobs)]) -> Jobs:
            return jobs

        async def register(
            db: Any, jobs: Annotated[Jobs, Depends(jobs)], same: Annotated[Jobs, Depends(further)]
        ) -> None:
            await of(db).execute(text("CREATE TABLE users (name)"))
            assert same is jobs
            await jobs(site.mail).push(1)
            [count] = await of(db).scalars(text("SELECT count(*) FROM fastqueue_jobs"))
            assert count == 1, "the push went through another session"

        register.__annotations__["db"] = alias
        site.app.post("/")(register)
        assert await site.post() == 200
        assert site.kept == [1]

    async def test_is_that_of_the_alias(self, site: Site) -> None:
        alias = Annotated[AsyncSession, Depends(site.session, scope="function")]
        await self.shared(site, transactional(site.queue, alias), alias)

    @pytest.mark.skipif(
        "max_concurrency" not in signature(Depends).parameters, reason="a later FastAPI brought max_concurrency"
    )
    async def test_is_that_of_the_alias_with_all_that_its_marker_says(self, site: Site) -> None:
        alias = Annotated[AsyncSession, Depends(site.session, scope="function", max_concurrency=1)]
        await self.shared(site, transactional(site.queue, alias), alias)

    async def test_is_that_of_a_bare_function_at_the_default_scope(self, site: Site) -> None:
        jobs = transactional(site.queue, site.session)
        await self.shared(site, jobs, Annotated[AsyncSession, Depends(site.session)])

    async def test_is_that_of_a_marker_as_it_was_written_once(self, site: Site) -> None:
        marker = Depends(site.session, scope="function")
        await self.shared(site, transactional(site.queue, marker), Annotated[AsyncSession, marker])

    async def test_is_within_the_value_of_a_class(self, site: Site) -> None:
        marker = Depends(site.session, scope="function")

        class UnitOfWork:
            def __init__(self, session: Annotated[AsyncSession, marker]) -> None:
                self.session = session

        alias = Annotated[UnitOfWork, Depends()]
        jobs = transactional(site.queue, alias, of=lambda work: work.session)
        await self.shared(site, jobs, alias, of=lambda work: work.session)

    async def test_is_that_of_a_callable_object(self, site: Site) -> None:
        class Sessions:
            async def __call__(self) -> AsyncGenerator[AsyncSession]:
                async with AsyncSession(site.engine) as session:
                    yield session
                    await session.commit()

        alias = Annotated[AsyncSession, Depends(Sessions(), scope="function")]
        await self.shared(site, transactional(site.queue, alias), alias)

    async def test_is_the_one_that_tests_put_in_its_place(self, site: Site) -> None:
        async def never() -> AsyncGenerator[AsyncSession]:
            raise AssertionError("this is overridden")
            yield

        alias = Annotated[AsyncSession, Depends(never, scope="function")]
        site.app.dependency_overrides[never] = site.session
        await self.shared(site, transactional(site.queue, alias), alias)

    async def test_may_be_inside_a_transaction_that_tests_roll_back(self, site: Site) -> None:
        async with site.engine.connect() as connection, connection.begin() as outer:

            async def joined() -> AsyncGenerator[AsyncSession]:
                async with AsyncSession(connection, join_transaction_mode="create_savepoint") as session:
                    yield session
                    await session.commit()

            marker = Depends(joined, scope="function")
            jobs = transactional(site.queue, Annotated[AsyncSession, marker])

            @site.app.post("/")
            async def register(db: Annotated[AsyncSession, marker], jobs: Annotated[Jobs, Depends(jobs)]) -> None:
                await db.execute(text("CREATE TABLE users (name)"))
                await jobs(site.mail).push(1)

            assert await site.post() == 200
            await outer.rollback()
        assert site.kept == []

    def test_must_be_named_by_a_dependency(self, site: Site) -> None:
        for nothing in (None, Annotated[AsyncSession, "no marker"], 7):
            with pytest.raises(OptionError, match="takes the alias that the routes have"):
                transactional(site.queue, nothing)

    def test_must_not_be_another_for_each_use(self, site: Site) -> None:
        with pytest.raises(OptionError, match="use_cache=False"):
            transactional(site.queue, Annotated[AsyncSession, Depends(site.session, use_cache=False)])


class TestPlainFunctions:
    async def test_push_by_a_plain_call_and_commit_themselves(self, site: Site, app: FastAPI) -> None:
        marker = Depends(site.plain_session)
        jobs = transactional(site.queue, Annotated[sqlmodel.Session, marker])

        @app.post("/")
        def register(db: Annotated[sqlmodel.Session, marker], jobs: Annotated[Jobs, Depends(jobs)]) -> None:
            jobs(site.mail).push_sync(1)
            jobs(site.mail).push_many_sync([2, 3])
            db.commit()

        assert await site.post() == 200
        assert site.kept == [1, 2, 3]

    async def test_that_forget_to_commit_keep_nothing_and_the_log_says_so(
        self, site: Site, app: FastAPI, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "fastqueue")
        marker = Depends(site.plain_session)
        jobs = transactional(site.queue, Annotated[sqlmodel.Session, marker])

        @app.post("/")
        def register(jobs: Annotated[Jobs, Depends(jobs)]) -> None:
            jobs(site.mail).push_sync(1)

        assert await site.post() == 200
        assert site.kept == []
        assert "1 job went with the transaction that was rolled back" in caplog.messages

    async def test_cannot_lose_a_push_that_nobody_awaits(self, site: Site, app: FastAPI) -> None:
        marker = Depends(site.plain_session)
        jobs = transactional(site.queue, Annotated[sqlmodel.Session, marker])

        @app.post("/")
        def register(db: Annotated[sqlmodel.Session, marker], jobs: Annotated[Jobs, Depends(jobs)]) -> None:
            jobs(site.mail).push(1)  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
            db.commit()

        with pytest.raises(WrongPlace, match="push_sync"):
            await site.post()
        assert site.kept == []

    async def test_may_be_async_and_hold_a_plain_session(self, site: Site, app: FastAPI) -> None:
        marker = Depends(site.plain_session)
        jobs = transactional(site.queue, Annotated[sqlmodel.Session, marker])

        @app.post("/")
        async def register(db: Annotated[sqlmodel.Session, marker], jobs: Annotated[Jobs, Depends(jobs)]) -> None:
            await jobs(site.mail).push(1)
            db.commit()

        assert await site.post() == 200
        assert site.kept == [1]

    async def test_wake_the_workers_from_the_thread_they_commit_in(self, site: Site) -> None:
        queue = Queue(site.url, poll=3600)
        mail = queue.handle("mail", site._send)
        marker = Depends(site.plain_session)
        jobs = transactional(queue, Annotated[sqlmodel.Session, marker])
        site.app = app = FastAPI(lifespan=lifespan(queue))

        @app.post("/")
        def register(db: Annotated[sqlmodel.Session, marker], jobs: Annotated[Jobs, Depends(jobs)]) -> None:
            jobs(mail).push_sync(1)
            db.commit()

        async with app.router.lifespan_context(app):
            assert await site.post() == 200
            async with asyncio.timeout(10):
                await site.ran.wait()
        assert "job 1" in site.log


class TestTheEnd:
    """After the transaction nothing commits a push any more, so it is refused and not lost."""

    @pytest.fixture
    def jobs(self, site: Site) -> Any:
        return transactional(site.queue, Annotated[AsyncSession, Depends(site.session, scope="function")])

    async def test_comes_before_a_streaming_body(self, site: Site, app: FastAPI, jobs: Any) -> None:
        @app.post("/")
        async def stream(jobs: Annotated[Jobs, Depends(jobs)]) -> StreamingResponse:
            async def body() -> AsyncGenerator[str]:
                await jobs(site.mail).push(1)
                yield "pushed"

            return StreamingResponse(body())

        with pytest.raises(TransactionEnded, match=r"jobs\('mail'\) .* `await kind.push\(value\)`"):
            await site.post()
        assert site.kept == []

    async def test_comes_before_a_background_task(self, site: Site, app: FastAPI, jobs: Any) -> None:
        @app.post("/")
        async def register(jobs: Annotated[Jobs, Depends(jobs)], after: BackgroundTasks) -> None:
            async def later() -> None:
                await jobs(site.mail).push(1)

            after.add_task(later)

        with pytest.raises(TransactionEnded):
            await site.post()

    async def test_is_seen_by_pushes_that_were_made_before_it(self, site: Site, app: FastAPI, jobs: Any) -> None:
        held: list[Pushing[int]] = []

        @app.post("/")
        async def register(jobs: Annotated[Jobs, Depends(jobs)]) -> None:
            held.append(jobs(site.mail))

        assert await site.post() == 200
        with pytest.raises(TransactionEnded):
            await held[0].push(1)
        with pytest.raises(TransactionEnded):
            held[0].push_sync(1)
        assert site.kept == []

    async def test_of_a_websocket_is_its_own(self, site: Site, app: FastAPI, jobs: Any) -> None:
        @app.websocket("/")
        async def talk(socket: WebSocket, jobs: Annotated[Jobs, Depends(jobs)]) -> None:
            await socket.accept()
            await jobs(site.mail).push(await socket.receive_json())
            await socket.send_json("pushed")
            await socket.receive_json()

        def talks() -> None:
            with TestClient(app).websocket_connect("/") as socket:
                socket.send_json(1)
                assert socket.receive_json() == "pushed"
                assert site.kept == []
                socket.send_json("bye")

        await asyncio.to_thread(talks)
        assert site.kept == [1]


class TestTwoScopes:
    """Two scopes of one dependency are two sessions: what a route writes and what it pushes would part."""

    @pytest.fixture
    def jobs(self, site: Site) -> Any:
        return transactional(site.queue, Annotated[AsyncSession, Depends(site.session, scope="function")])

    async def refused(self, site: Site, path: str) -> None:
        for _ in range(2):
            with pytest.raises(TwoTransactions, match=f"the route {path} depends on session .* function and request"):
                await site.post(path)
        assert site.kept == []

    async def test_in_the_route_itself(self, site: Site, app: FastAPI, jobs: Any) -> None:
        @app.post("/direct")
        async def register(
            db: Annotated[AsyncSession, Depends(site.session)], jobs: Annotated[Jobs, Depends(jobs)]
        ) -> None:
            await jobs(site.mail).push(1)

        await self.refused(site, "/direct")

    async def test_in_what_it_depends_on(self, site: Site, app: FastAPI, jobs: Any) -> None:
        async def user(db: Annotated[AsyncSession, Depends(site.session)]) -> str:
            return "ada"

        @app.post("/below")
        async def register(user: Annotated[str, Depends(user)], jobs: Annotated[Jobs, Depends(jobs)]) -> None:
            await jobs(site.mail).push(1)

        await self.refused(site, "/below")

    async def test_in_its_router(self, site: Site, app: FastAPI, jobs: Any) -> None:
        router = APIRouter(prefix="/router", dependencies=[Depends(site.session)])

        @router.post("/")
        async def register(jobs: Annotated[Jobs, Depends(jobs)]) -> None:
            await jobs(site.mail).push(1)

        app.include_router(router)
        await self.refused(site, "/router/")

    async def test_one_scope_many_times_is_one_session(self, site: Site, app: FastAPI, jobs: Any) -> None:
        marker = Depends(site.session, scope="function")

        async def user(db: Annotated[AsyncSession, marker]) -> str:
            return "ada"

        @app.post("/")
        async def register(
            db: Annotated[AsyncSession, marker],
            user: Annotated[str, Depends(user)],
            jobs: Annotated[Jobs, Depends(jobs)],
        ) -> None:
            await jobs(site.mail).push(1)

        assert await site.post() == 200
        assert site.log.count("begin") == 1
        assert site.kept == [1]


class TestATransactionOfTheQueuesOwn:
    """An app without an ORM: the connection of `queue.transaction()` as its dependency."""

    async def test_is_committed_before_the_response_and_wakes_the_workers(self, site: Site, app: FastAPI) -> None:
        async def transaction() -> AsyncGenerator[sqlite3.Connection]:
            async with site.queue.transaction() as connection:
                yield connection
            site.log.append("commit")

        marker = Depends(transaction, scope="function")
        jobs = transactional(site.queue, Annotated[sqlite3.Connection, marker])

        @app.post("/")
        async def register(
            db: Annotated[sqlite3.Connection, marker], jobs: Annotated[Jobs, Depends(jobs)], number: int
        ) -> None:
            db.execute("CREATE TABLE IF NOT EXISTS users (id INTEGER)")
            db.execute("INSERT INTO users VALUES (?)", [number])
            await jobs(site.mail).push(number)
            if number == 2:
                raise HTTPException(409)

        async with lifespan(site.queue)(app):
            assert await site.post("/?number=1") == 200
            assert [words for words in site.log if words != "job 1"] == ["commit", "response"]
            async with asyncio.timeout(10):
                await site.ran.wait()
            assert await site.post("/?number=2") == 409
        assert site.kept == []
        with sync_engine(site.url, "pysqlite") as engine, engine.connect() as connection:
            assert connection.scalars(text("SELECT id FROM users")).all() == [1]


class TestAStoreThatJoinsNoTransaction:
    """It is pushed to right after the commit, and never after a rollback."""

    async def test_has_the_jobs_of_what_was_committed(self, site: Site, app: FastAPI) -> None:
        marker = Depends(site.session, scope="function")
        queue = Queue("memory://")
        mail = queue.handle("mail", site._send)
        jobs = transactional(queue, Annotated[AsyncSession, marker])

        @app.post("/refuses")
        async def refuse(jobs: Annotated[Jobs, Depends(jobs)]) -> None:
            await jobs(mail).push(1)
            raise HTTPException(409)

        @app.post("/commits")
        async def commit(db: Annotated[AsyncSession, marker], jobs: Annotated[Jobs, Depends(jobs)]) -> None:
            async with db.begin_nested() as savepoint:
                await jobs(mail).push(2)
                await savepoint.rollback()
            async with db.begin_nested():
                await jobs(mail).push(3)
            assert await queue.store.jobs(now=0) == []

        async with lifespan(queue)(app):
            assert await site.post("/refuses") == 409
            assert await site.post("/commits") == 200
            async with asyncio.timeout(10):
                await site.ran.wait()
        assert [words for words in site.log if words.startswith("job")] == ["job 3"]


async def test_a_kind_of_another_queue_is_refused_before_anything_is_pushed(site: Site, app: FastAPI) -> None:
    marker = Depends(site.session, scope="function")
    jobs = transactional(site.queue, Annotated[AsyncSession, marker])
    other, homeless = Queue("memory://").handle("mail", site._send), Kinds().handle("mail", site._send)

    @app.post("/{whose}")
    async def register(whose: str, jobs: Annotated[Jobs, Depends(jobs)]) -> None:
        await jobs(other if whose == "other" else homeless).push(1)

    for whose in ("other", "homeless"):
        with pytest.raises(
            RegistrationError, match=r"jobs\('mail'\): the kind belongs to another queue than <Queue on"
        ):
            await site.post(f"/{whose}")
    assert site.kept == []


async def test_tests_may_put_their_own_jobs_in_place(site: Site, app: FastAPI) -> None:
    marker = Depends(site.session, scope="function")
    jobs = transactional(site.queue, Annotated[AsyncSession, marker])
    asked: list[str] = []

    @app.post("/")
    async def register(jobs: Annotated[Jobs, Depends(jobs)]) -> None:
        jobs(site.mail)

    class Asked:
        def __call__(self, kind: Kind[Any], /) -> Any:
            asked.append(kind.name)

    app.dependency_overrides[jobs] = Asked
    assert await site.post() == 200
    assert (asked, site.log) == (["mail"], ["response"])


async def test_a_value_of_the_wrong_type_is_found_by_type_checkers_and_refused(site: Site, app: FastAPI) -> None:
    marker = Depends(site.session, scope="function")
    jobs = transactional(site.queue, Annotated[AsyncSession, marker])

    @app.post("/")
    async def register(jobs: Annotated[Jobs, Depends(jobs)]) -> None:
        await jobs(site.mail).push("one")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    with pytest.raises(ValueRefused):
        await site.post()
    assert site.kept == []


@pytest.mark.parametrize("scope", ["function", "request"])
async def test_a_job_finds_what_was_written_beside_it_and_is_not_left_waiting(site: Site, scope: Any) -> None:
    """The queue would look by itself in an hour; the commit wakes it."""
    queue = Queue(site.url, poll=3600)
    users: list[int] = []

    @queue.handle("count")
    async def count(number: int) -> None:
        async with AsyncSession(site.engine) as session:
            users.append((await session.scalars(text("SELECT count(*) FROM users"))).one())
        site.ran.set()

    marker = Depends(site.session, scope=scope)
    jobs = transactional(queue, Annotated[AsyncSession, marker])
    site.app = app = FastAPI(lifespan=lifespan(queue))

    @app.post("/")
    async def register(db: Annotated[AsyncSession, marker], jobs: Annotated[Jobs, Depends(jobs)]) -> None:
        async with db.begin_nested():
            await jobs(count).push(1)
        await db.execute(text("INSERT INTO users VALUES ('ada')"))

    async with AsyncSession(site.engine) as session:
        await session.execute(text("CREATE TABLE users (name)"))
        await session.commit()
    async with app.router.lifespan_context(app):
        assert await site.post() == 200
        async with asyncio.timeout(10):
            await site.ran.wait()
    assert users == [1]


async def test_requests_that_read_and_then_push_are_never_told_locked_beside_workers_that_write(
    site: Site, app: FastAPI
) -> None:
    marker = Depends(site.session, scope="function")
    jobs = transactional(site.queue, Annotated[AsyncSession, marker])
    ran: list[int] = []

    @site.queue.handle("note")
    async def note(number: int) -> None:
        ran.append(number)

    @app.post("/{number}")
    async def register(number: int, db: Annotated[AsyncSession, marker], jobs: Annotated[Jobs, Depends(jobs)]) -> None:
        await db.execute(text("SELECT COUNT(*) FROM fastqueue_jobs"))
        await jobs(note).push(number)

    async def one(client: httpx.AsyncClient, first: int) -> list[int]:
        return [(await client.post(f"/{number}")).status_code for number in range(first, 60, 4)]

    async with lifespan(site.queue)(app), site.client() as client:
        statuses = await asyncio.gather(*(one(client, first) for first in range(4)))
        async with asyncio.timeout(20):
            while len(ran) < 60:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    assert {status for each in statuses for status in each} == {200}
    assert sorted(ran) == list(range(60))

"""Who waits for the commit of a session is told of it once, when it has really happened."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from typing import Any

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from fastqueue.stores.joins import after_commit
from tests.handles import async_engine, sync_engine


@pytest.fixture
def engine(sqlite_url: str) -> Generator[Engine]:
    with sync_engine(sqlite_url, "pysqlite") as engine:
        yield engine


class Told:
    """Called, and how often."""

    def __init__(self) -> None:
        self.times = 0

    def call(self) -> None:
        self.times += 1

    def after(self, handle: Any, pushed: int = 1) -> None:
        assert after_commit(handle, self.call, pushed=pushed)


@pytest.fixture
def told() -> Told:
    return Told()


def test_it_is_told_once_however_often_it_asked(engine: Engine, told: Told) -> None:
    with Session(engine) as session:
        told.after(session)
        told.after(session)
        session.commit()
        session.commit()
    assert told.times == 1


def test_two_that_wait_are_both_told(engine: Engine, told: Told) -> None:
    other = Told()
    with Session(engine) as session:
        told.after(session)
        other.after(session)
        session.commit()
    assert (told.times, other.times) == (1, 1)


def test_the_next_transaction_of_the_session_is_another(engine: Engine, told: Told) -> None:
    with Session(engine) as session:
        told.after(session)
        session.rollback()
        session.execute(text("SELECT 1"))
        session.commit()
        assert told.times == 0
        told.after(session)
        session.commit()
    assert told.times == 1


def test_a_released_savepoint_is_no_commit(engine: Engine, told: Told) -> None:
    with Session(engine) as session:
        with session.begin_nested():
            told.after(session)
        assert told.times == 0
        with session.begin_nested():
            pass
        assert told.times == 0
        session.commit()
    assert told.times == 1


def test_a_savepoint_that_is_rolled_back_takes_along_what_asked_within_it(engine: Engine, told: Told) -> None:
    with Session(engine) as session:
        around = session.begin_nested()
        with session.begin_nested():
            told.after(session)
        around.rollback()
        session.commit()
    assert told.times == 0


def test_a_savepoint_that_is_rolled_back_leaves_what_asked_before_it(engine: Engine, told: Told) -> None:
    with Session(engine) as session:
        told.after(session)
        session.begin_nested().rollback()
        session.commit()
    assert told.times == 1


def test_a_commit_ends_savepoints_that_are_open(engine: Engine, told: Told) -> None:
    with Session(engine) as session:
        session.begin_nested()
        session.begin_nested()
        told.after(session)
        session.commit()
    assert told.times == 1


@pytest.mark.parametrize("commits", [True, False])
async def test_it_is_told_of_an_async_session_too(sqlite_url: str, told: Told, *, commits: bool) -> None:
    async with async_engine(sqlite_url, "aiosqlite") as engine, AsyncSession(engine) as session:
        async with session.begin_nested():
            told.after(session)
        await (session.commit() if commits else session.rollback())
    assert told.times == int(commits)


def test_it_is_told_of_the_session_behind_a_scoped_one(engine: Engine, told: Told) -> None:
    sessions = scoped_session(sessionmaker(engine))
    told.after(sessions)
    sessions.commit()
    sessions.remove()
    assert told.times == 1


def test_it_is_told_in_the_thread_that_commits(engine: Engine) -> None:
    threads: list[int] = []

    def work() -> None:
        with Session(engine) as session:
            after_commit(session, lambda: threads.append(threading.get_ident()), pushed=1)
            session.commit()
        assert threads == [threading.get_ident()]

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(threads) == 1


def test_a_session_inside_the_transaction_of_a_connection_tells_of_its_own_commit(engine: Engine, told: Told) -> None:
    """As tests do, that roll all back; whoever is told finds nothing."""
    with engine.connect() as connection, connection.begin() as outer:
        with Session(connection, join_transaction_mode="create_savepoint") as session:
            told.after(session)
            session.commit()
            assert told.times == 1
            session.execute(text("SELECT 1"))
            session.commit()
        outer.rollback()
    assert told.times == 1


def test_a_commit_that_fails_is_none(engine: Engine, told: Told) -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE one (id INTEGER PRIMARY KEY)"))
        connection.execute(text("CREATE TABLE two (one INTEGER REFERENCES one DEFERRABLE INITIALLY DEFERRED)"))
    with Session(engine) as session:
        session.execute(text("PRAGMA foreign_keys = ON"))
        session.execute(text("INSERT INTO two VALUES (7)"))
        told.after(session)
        with pytest.raises(IntegrityError):
            session.commit()
    assert told.times == 0


def test_what_fails_after_the_commit_is_logged_and_the_commit_stands(
    engine: Engine, told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with Session(engine) as session:
        after_commit(session, fail, pushed=1)
        told.after(session)
        session.commit()
    assert told.times == 1
    assert "the transaction was committed, but" in caplog.text


def test_a_connection_does_not_tell(engine: Engine, told: Told) -> None:
    with engine.connect() as connection:
        assert not after_commit(connection, told.call, pushed=1)
    assert not after_commit(object(), told.call, pushed=1)


def test_a_session_that_may_not_begin_by_itself_does_not_tell(engine: Engine, told: Told) -> None:
    with Session(engine, autobegin=False) as session:
        assert not after_commit(session, told.call, pushed=1)


class TestTheLog:
    """Jobs that went are named; a commit that was forgotten would leave no other trace."""

    @pytest.fixture(autouse=True)
    def listen(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "fastqueue")

    def test_a_rollback(self, engine: Engine, told: Told, caplog: pytest.LogCaptureFixture) -> None:
        with Session(engine) as session:
            told.after(session, pushed=2)
            told.after(session)
            session.rollback()
        assert caplog.messages == ["3 jobs went with the transaction that was rolled back"]
        assert caplog.records[0].levelno == logging.INFO

    def test_a_forgotten_commit(self, engine: Engine, told: Told, caplog: pytest.LogCaptureFixture) -> None:
        with Session(engine) as session:
            told.after(session)
        assert caplog.messages == ["1 job went with the transaction that was rolled back"]

    async def test_a_forgotten_commit_of_an_async_session(
        self, sqlite_url: str, told: Told, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with async_engine(sqlite_url, "aiosqlite") as engine, AsyncSession(engine) as session:
            told.after(session)
        assert caplog.messages == ["1 job went with the transaction that was rolled back"]

    def test_nothing_of_a_commit(self, engine: Engine, told: Told, caplog: pytest.LogCaptureFixture) -> None:
        with Session(engine) as session:
            with session.begin_nested():
                told.after(session)
            session.commit()
        assert caplog.messages == []

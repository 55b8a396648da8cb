"""Unique keys of jobs that are pushed in transactions: who is told that a job waits, and what if that one goes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession
from sqlalchemy.orm import Session

from fastqueue.job import NewJob, Pushed
from fastqueue.store import Store
from tests.handles import async_engine, begin_immediate, store_at, sync_engine

ASYNC_DRIVERS = {"sqlite": "aiosqlite", "postgres": "asyncpg", "mysql": "asyncmy"}


def job(n: int, key: str = "a") -> NewJob:
    return NewJob(kind="mail", payload=str(n), run_at=0, unique_key=key)


async def push(store: Store, handle: Any, *jobs: NewJob) -> list[Pushed]:
    assert store.joins is not None
    return await store.joins.enlist(handle).push(jobs, now=0)


@pytest.fixture(params=list(ASYNC_DRIVERS))
async def place(request: pytest.FixtureRequest) -> AsyncGenerator[tuple[Store, AsyncEngine]]:
    url = request.getfixturevalue(f"{request.param}_url")
    store = store_at(request.param, url)
    await store.open()
    async with async_engine(url, ASYNC_DRIVERS[request.param]) as engine:
        if request.param == "sqlite":
            begin_immediate(engine)
        yield store, engine
    await store.close()


@pytest.mark.parametrize("last_commits", [True, False])
async def test_of_five_that_push_a_key_at_once_the_one_that_commits_has_the_job(
    place: tuple[Store, AsyncEngine], *, last_commits: bool
) -> None:
    store, engine = place
    commits = iter([False, False, False, False, last_commits])

    async def one(n: int) -> bool:
        async with AsyncSession(engine) as session:
            await push(store, session, job(n))
            # Whoever gets here holds the key; the others wait for it to let go.
            if next(commits):
                await session.commit()
                return True
            await session.rollback()
            return False

    committed = [n for n, did in enumerate(await asyncio.gather(*map(one, range(5)))) if did]
    assert [int(stored.payload) for stored in await store.jobs(now=0)] == committed
    assert len(committed) == int(last_commits)


async def test_a_key_that_was_committed_after_the_transaction_began_is_seen(
    place: tuple[Store, AsyncEngine],
) -> None:
    store, engine = place
    if store.name == "sqlite":
        pytest.skip("SQLite lets nobody else write meanwhile")
    async with AsyncSession(engine) as old:
        await old.execute(text("SELECT count(*) FROM fastqueue_jobs"))
        async with AsyncSession(engine) as new:
            [first] = await push(store, new, job(1))
            await new.commit()
        [again, other] = await push(store, old, job(2), job(3, key="b"))
        assert (again.id, again.new, other.new) == (first.id, False, True)
        await old.commit()
    assert [int(stored.payload) for stored in await store.jobs(now=0)] == [1, 3]


async def test_a_plain_mysql_session_sees_such_a_key_too(mysql_url: str) -> None:
    store = store_at("mysql", mysql_url)
    with sync_engine(mysql_url, "pymysql") as engine:
        await store.open()
        with Session(engine) as old:
            old.execute(text("SELECT count(*) FROM fastqueue_jobs"))
            with Session(engine) as new:
                [first] = await push(store, new, job(1))
                new.commit()
            [again] = await push(store, old, job(2))
            assert (again.id, again.new) == (first.id, False)
            old.commit()
    await store.close()

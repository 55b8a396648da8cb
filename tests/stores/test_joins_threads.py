"""Plain sessions are used in threads, where a store's own connections, which belong to an event loop, are no help."""

from __future__ import annotations

import asyncio
import threading

import pytest
from sqlalchemy.orm import Session

from fastqueue.job import NewJob, Pushed
from fastqueue.store import Store
from tests.handles import store_at, sync_engine

each_store = pytest.mark.parametrize(
    ("name", "driver"), [("sqlite", "pysqlite"), ("postgres", "psycopg"), ("mysql", "pymysql")]
)


def push(store: Store, url: str, driver: str) -> Pushed:
    """Push a job with a key in a transaction of its own."""
    assert store.joins is not None
    with sync_engine(url, driver) as engine, Session(engine) as session:
        enlisted = store.joins.enlist(session)
        [pushed] = enlisted.push_sync([NewJob(kind="mail", payload="1", run_at=0, unique_key="a")], now=0)
        session.commit()
    return pushed


@each_store
async def test_a_thread_pushes_while_the_event_loop_of_the_store_waits_for_it(
    request: pytest.FixtureRequest, name: str, driver: str
) -> None:
    url = request.getfixturevalue(f"{name}_url")
    store = store_at(name, url)
    await store.open()
    thread = threading.Thread(target=push, args=(store, url, driver))
    thread.start()
    thread.join()  # not awaited: the event loop stands still
    assert len(await store.jobs(now=0)) == 1
    await store.close()


@each_store
async def test_threads_push_when_the_store_was_never_opened_in_this_process(
    request: pytest.FixtureRequest, name: str, driver: str
) -> None:
    url = request.getfixturevalue(f"{name}_url")
    elsewhere = store_at(name, url)
    await elsewhere.open()
    store = store_at(name, url)
    pushed = await asyncio.gather(*(asyncio.to_thread(push, store, url, driver) for _ in range(3)))
    assert sorted(each.new for each in pushed) == [False, False, True]
    assert len(await elsewhere.jobs(now=0)) == 1
    await elsewhere.close()

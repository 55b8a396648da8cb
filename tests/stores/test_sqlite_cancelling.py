"""A caller that is cancelled, at whatever point, leaves no transaction open and no job half done."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Coroutine
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fastqueue.job import Claimed, NewJob
from fastqueue.outcome import Settlement
from fastqueue.stores.sqlite import SQLiteStore

NOW = 1_000_000
ROUNDS = 200
VERBS = ("push", "claim", "renew", "settle")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SQLiteStore]:
    store = SQLiteStore(tmp_path / "jobs.db")
    await store.open()
    yield store
    await store.close()


def pair(group: str) -> list[NewJob]:
    return [NewJob(kind="count", payload=group, run_at=NOW) for _ in range(2)]


class Rounds:
    """Calls of every verb in turn, each about two jobs that must stay alike."""

    def __init__(self, store: SQLiteStore) -> None:
        self.store = store
        self.tokens = count(1)

    async def prepared(self, verb: str, group: str) -> Coroutine[Any, Any, object]:
        """The call to be cancelled, on a pair of jobs of its own."""
        if verb == "push":
            return self.store.push(pair(group), now=NOW)
        await self.store.push(pair(group), now=NOW)
        if verb == "claim":
            return self.claim()
        held = await self.claim()
        assert {job.payload for job in held} == {group}
        if verb == "renew":
            return self.store.renew(held, now=NOW, until=NOW + 999_000)
        return self.store.settle([Settlement.done(job) for job in held])

    async def claim(self) -> list[Claimed]:
        token = next(self.tokens)
        return (await self.store.claim(NOW, token=token, limit=2, queues=None, kinds={"count"})).jobs

    async def clean_up(self) -> None:
        """Take all that waits out of the way of the rounds to come."""
        while await self.claim():
            pass


async def cancelled(call: Coroutine[Any, Any, object], turns: int) -> bool:
    """Run a call for some turns of the loop, then cancel it; whether it had not ended by itself."""
    task = asyncio.ensure_future(call)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    return task.cancelled()


async def test_a_cancelled_call_leaves_no_lock_and_no_half_done_pair(store: SQLiteStore) -> None:
    random, rounds = Random(31), Rounds(store)
    app = sqlite3.connect(store.path, timeout=0, isolation_level=None)
    really_cancelled = 0
    for n in range(ROUNDS):
        call = await rounds.prepared(VERBS[n % 4], f"round {n}")
        locked = random.random() < 1 / 3
        if locked:
            app.execute("BEGIN IMMEDIATE")
        really_cancelled += await cancelled(call, random.randrange(5))
        if locked:
            app.execute("COMMIT")

        assert not await store._access.read(lambda database: database.in_transaction)
        app.execute("BEGIN IMMEDIATE")
        app.execute("COMMIT")
        kept = [job for job in await store.jobs(now=NOW, limit=10_000) if job.payload == f"round {n}"]
        assert len(kept) in (0, 2)
        assert len({(job.state(NOW), job.held_ms, job.attempts) for job in kept}) <= 1
        await rounds.clean_up()
    assert really_cancelled > ROUNDS / 4
    app.close()


async def test_a_cancelled_push_is_kept_when_its_lock_comes_late(store: SQLiteStore) -> None:
    app = sqlite3.connect(store.path, timeout=0, isolation_level=None)
    app.execute("BEGIN IMMEDIATE")
    assert await cancelled(store.push(pair("late"), now=NOW), 3)
    app.execute("COMMIT")
    assert len(await store.jobs(now=NOW)) == 2
    app.close()


async def test_opening_can_be_cancelled_and_done_again(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "new.db")
    for turns in range(6):
        await cancelled(store.open(), turns)
    await store.open()
    assert await store.push(pair("x"), now=NOW)
    await store.close()

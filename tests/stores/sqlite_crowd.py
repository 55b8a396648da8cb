"""A process of `test_sqlite_processes`: a worker that pushes and claims, or the app's own writing, on one file.

Run as `python -m tests.stores.sqlite_crowd worker|app NAME PATH`; what it did is written to its output as JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import sys

from fastqueue.job import NewJob
from fastqueue.outcome import Settlement
from fastqueue.stores.sqlite import SQLiteStore

PUSHES = 60
WRITES = 60
NOW = 1_000_000
KINDS = ("free", "limited", "alone", "unique")


def new_job(kind: str, payload: str) -> NewJob:
    return NewJob(
        kind=kind,
        payload=payload,
        run_at=NOW,
        at_once=3 if kind == "limited" else 0,
        alone_key=payload[-1] if kind == "alone" else None,
        unique_key=payload[-1] if kind == "unique" else None,
        latest=True,
    )


async def push(store: SQLiteStore, name: str, pushed: list[int]) -> None:
    for n in range(PUSHES):
        answers = await store.push([new_job(kind, f"{name}.{n}") for kind in KINDS], now=NOW)
        pushed += [answer.id for answer in answers if answer.new]


async def work(store: SQLiteStore, pushing: list[asyncio.Task[None]], settled: list[int]) -> None:
    while True:
        last = all(task.done() for task in pushing)
        token = random.getrandbits(62)
        jobs = (await store.claim(NOW, token=token, limit=random.choice((1, 5, 20)), queues=None, kinds=KINDS)).jobs
        answers = await store.settle([Settlement.done(job) for job in jobs])
        settled += [job.id for job, kept in zip(jobs, answers, strict=True) if kept]
        if last and not jobs:
            return


async def worker(name: str, path: str) -> dict[str, list[int]]:
    store = SQLiteStore(path)
    await store.open()
    pushed: list[int] = []
    settled: list[int] = []
    pushing = [asyncio.create_task(push(store, f"{name}{n}", pushed)) for n in range(3)]
    await asyncio.gather(*pushing, work(store, pushing, settled), work(store, pushing, settled))
    await store.close()
    return {"pushed": pushed, "settled": settled}


def app(name: str, path: str) -> dict[str, list[int]]:
    """The app's own transactions, begun as its pages say: with the lock."""
    connection = sqlite3.connect(path, timeout=60, isolation_level=None)
    connection.execute("CREATE TABLE IF NOT EXISTS users (name TEXT)")
    for _ in range(WRITES):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("SELECT count(*) FROM users").fetchone()
        connection.execute("INSERT INTO users VALUES (?)", (name,))
        connection.execute("COMMIT")
    connection.close()
    return {"pushed": [], "settled": []}


if __name__ == "__main__":
    role, own_name, file = sys.argv[1:]
    done = asyncio.run(worker(own_name, file)) if role == "worker" else app(own_name, file)
    print(json.dumps(done))

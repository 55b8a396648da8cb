"""A process of `test_mysql_processes`: pushers, some in transactions that may be rolled back, and claimers.

Run as `python -m tests.stores.mysql_crowd NAME URL PUSHES`; what it did is written to its output as JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys

from asyncmy import Connection, connect

from fastqueue.job import NewJob, Pushed
from fastqueue.outcome import Settlement
from fastqueue.stores.mysql import MySQLStore
from fastqueue.stores.mysql._address import Address
from tests.stores.jobs import NOW, there

CALLERS = 4
KINDS = ("free", "limited", "alone", "unique", "both")


def some_jobs(name: str) -> list[NewJob]:
    """A batch over all kinds, in any order, with keys that other batches have too."""
    jobs: list[NewJob] = []
    for kind in random.choices(KINDS, k=random.choice((1, 2, 5, 20))):
        key = str(random.randrange(30))
        jobs.append(
            NewJob(
                kind=kind,
                payload=json.dumps(name),
                run_at=NOW + random.randrange(50),
                at_once=3 if kind in ("limited", "both") else 0,
                alone_key=key if kind in ("alone", "both") else None,
                unique_key=key if kind in ("unique", "both") else None,
                latest=random.random() < 0.5,
            )
        )
    return jobs


class Crowd:
    """The callers of one process; each claimer has a store object of its own.

    Attributes:
        pushed, settled: Ids of the jobs that this process added, and of those it ended.
    """

    def __init__(self, name: str, url: str, pushes: int) -> None:
        self.name, self.url, self.pushes = name, url, pushes
        self.pushed: list[int] = []
        self.settled: list[int] = []

    async def push(self, store: MySQLStore, connection: Connection) -> None:
        for _ in range(self.pushes):
            jobs = some_jobs(self.name)
            if random.random() < 0.1:
                answers = await self.push_in_transaction(store, connection, jobs)
            else:
                answers = await store.push(jobs, now=NOW)
            self.pushed += [answer.id for answer in answers if answer.new]

    async def push_in_transaction(self, store: MySQLStore, connection: Connection, jobs: list[NewJob]) -> list[Pushed]:
        await connection.begin()
        answers = await there(store.joins).enlist(connection).push(jobs, now=NOW)
        if random.random() < 0.5:
            await connection.commit()
            return answers
        await connection.rollback()
        return []

    async def claim(self, pushing: list[asyncio.Task[None]]) -> None:
        store = MySQLStore(self.url)
        await store.open()
        while True:
            last = all(task.done() for task in pushing)
            limit = random.choice((1, 5, 20))
            token = random.getrandbits(62)
            jobs = (await store.claim(NOW + 50, token=token, limit=limit, queues=None, kinds=KINDS)).jobs
            if random.random() < 0.1:
                await store.give_back(jobs)
                continue
            ends = [
                Settlement.done(job) if random.random() < 0.9 else Settlement.retry(job, at=NOW, error="again")
                for job in jobs
            ]
            answers = await store.settle(ends)
            assert all(answers), "a settlement was late"
            self.settled += [end.id for end in ends if end.ending == "gone"]
            if last and not jobs:
                break
        await store.close()

    async def run(self) -> None:
        store = MySQLStore(self.url)
        await store.open()
        connections = [await connect(**Address.read(self.url).arguments) for _ in range(CALLERS)]
        pushing = [asyncio.create_task(self.push(store, connection)) for connection in connections]
        await asyncio.gather(*pushing, *(self.claim(pushing) for _ in range(CALLERS)))
        await store.close()
        for connection in connections:
            await connection.ensure_closed()


if __name__ == "__main__":
    crowd = Crowd(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    asyncio.run(crowd.run())
    print(json.dumps({"pushed": crowd.pushed, "settled": crowd.settled}))

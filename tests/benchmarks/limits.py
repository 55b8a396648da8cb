"""What a full kind at the head of the line costs the claims of others: ratios to the same run without it.

`scripts/bench` runs it after the table of the road; `--waiting N` sets how many jobs of the full kind wait, `--only
NAME` one store. A database without a server is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from fastqueue.job import Moment, NewJob
from fastqueue.outcome import Settlement
from fastqueue.store import Store
from fastqueue.stores import store_of
from tests.servers import mysql, postgres, redis

NOW: Moment = 1_788_264_000_000
BATCH = 10
ROUNDS = 100
KINDS = {"full", "other"}


class Row(NamedTuple):
    """The milliseconds of a claim and its settlement: alone, and behind the full kind."""

    store: str
    measure: str
    alone: float
    behind: float


def main() -> None:
    """Measure each store and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waiting", type=int, default=100_000)
    parser.add_argument("--only", metavar="NAME")
    asked, _ = parser.parse_known_args()
    print(f"{'store':<10}{'measure':<28}{'alone':>10}{'behind':>10}{'ratio':>8}   ms; {asked.waiting:,} of a full kind")
    with ExitStack() as places, tempfile.TemporaryDirectory() as folder:
        urls = {"memory": "memory://", "sqlite": f"sqlite:///{Path(folder) / 'jobs.db'}"}
        for name, servers in (("postgres", postgres), ("mysql", mysql), ("redis", redis)):
            if server := os.environ.get(f"FASTQUEUE_BENCH_{name.upper()}") or servers.running():
                urls[name] = places.enter_context(servers.fresh_database(server))
        for name, url in urls.items():
            for row in asyncio.run(measured(name, url, asked.waiting)) if asked.only in (None, name) else ():
                ratio = row.behind / row.alone
                print(f"{row.store:<10}{row.measure:<28}{row.alone:>10.2f}{row.behind:>10.2f}{ratio:>8.2f}")


async def measured(name: str, url: str, waiting: int) -> list[Row]:
    """The same claims twice on one store: on their own, and with the jobs of a full kind before them in the line."""
    store = store_of(url)
    await store.open()
    try:
        alone = [await turns(store, jobs=True), await turns(store, jobs=False)]
        full = NewJob(kind="full", payload="{}", run_at=NOW - 1, hold_ms=3_600_000, at_once=2)
        for start in range(0, waiting + 2, 1000):
            await store.push([full] * min(1000, waiting + 2 - start), now=NOW)
        assert len(await claim(store, limit=9)) == 2
        behind = [await turns(store, jobs=True), await turns(store, jobs=False)]
    finally:
        await store.close()
    measures = (f"claim {BATCH}, and settle", "claim that takes nothing")
    return [Row(name, *row) for row in zip(measures, alone, behind, strict=True)]


async def turns(store: Store, *, jobs: bool) -> float:
    """The milliseconds of one turn of many."""
    if jobs:
        other = NewJob(kind="other", payload="{}", run_at=NOW)
        await store.push([other] * (BATCH * ROUNDS), now=NOW)
    begun = time.perf_counter()
    for _ in range(ROUNDS):
        taken = await claim(store, limit=BATCH)
        assert len(taken) == (BATCH if jobs else 0)
        if taken:
            await store.settle(taken)
    return (time.perf_counter() - begun) / ROUNDS * 1000


async def claim(store: Store, *, limit: int) -> list[Settlement]:
    """Take jobs of both kinds; what to settle them with."""
    found = await store.claim(NOW, token=random.getrandbits(62), limit=limit, queues=None, kinds=KINDS)
    return [Settlement.done(job) for job in found.jobs]


if __name__ == "__main__":
    main()

"""A process full of claimers, each with a job in its hands or looking for one, until it is killed.

Run as `python -m tests.processes.claimers URL CLAIMERS`.
"""

from __future__ import annotations

import asyncio
import random
import sys

from fastqueue.outcome import Settlement
from fastqueue.store import Store
from fastqueue.stores import store_of
from tests.processes.record import KIND, now_by


async def claim(store: Store) -> None:
    """Take jobs and do them, some longer than others."""
    while True:
        token = random.getrandbits(62)
        limit = random.choice((1, 2, 5))
        claim = await store.claim(await now_by(store), token=token, limit=limit, queues=None, kinds={KIND})
        await asyncio.sleep(random.uniform(0.005, 0.03))
        await store.settle([Settlement.done(job) for job in claim.jobs])


async def main(url: str, claimers: int) -> None:
    store = store_of(url)
    await store.open()
    print("ready", flush=True)
    await asyncio.gather(*(claim(store) for _ in range(claimers)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))

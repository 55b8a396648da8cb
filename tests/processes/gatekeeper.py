"""A process that stands still within a claim on MySQL, at the gate of the limited kind, until it is killed.

Run as `python -m tests.processes.gatekeeper URL`.
"""

from __future__ import annotations

import asyncio
import sys

from fastqueue.stores._sql import Call
from fastqueue.stores.mysql import MySQLStore
from tests.processes.record import KIND


async def main(url: str) -> None:
    store = MySQLStore(url)
    await store.open()
    async with store._access.here.claims.transaction() as execute:
        await execute(Call(store.statements["claim.gates"], {"kinds": [KIND]}))
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

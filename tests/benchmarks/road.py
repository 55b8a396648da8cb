"""How fast jobs go in and out, beside what the bare database does in the same run: ratios, since machines are noisy.

`scripts/bench` runs it; `--jobs N` sets how many, `--only NAME` one store.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import asyncpg

from fastqueue import Queue, Ran

BATCH = 100


class Row(NamedTuple):
    """A measure, in jobs a second, and what the bare database did; None: there is nothing to compare with."""

    store: str
    measure: str
    rate: float
    raw: float | None


class Raw(NamedTuple):
    """What the bare database does, in rows a second."""

    single: float
    many: float
    drain: float


def main() -> None:
    """Measure each store and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--only", choices=["memory", "sqlite", "postgres"])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = os.environ.get("FASTQUEUE_BENCH_POSTGRES", "postgresql://postgres@127.0.0.1/postgres")
        stores: dict[str, Callable[[], Awaitable[list[Row]]]] = {
            "memory": lambda: measured("memory", "memory://", None, asked.jobs),
            "sqlite": lambda: on_sqlite(Path(folder), asked.jobs),
            "postgres": lambda: on_postgres(server, asked.jobs),
        }
        rows = [row for name, one in stores.items() if asked.only in (None, name) for row in asyncio.run(_await(one))]
    print(f"{'store':<10}{'measure':<28}{'jobs/s':>10}{'raw':>10}{'ratio':>8}")
    for row in rows:
        raw, ratio = ("", "") if row.raw is None else (f"{row.raw:,.0f}", f"{row.rate / row.raw:.2f}")
        print(f"{row.store:<10}{row.measure:<28}{row.rate:>10,.0f}{raw:>10}{ratio:>8}")


async def _await(one: Callable[[], Awaitable[list[Row]]]) -> list[Row]:
    return await one()


async def measured(store: str, url: str, raw: Raw | None, jobs: int) -> list[Row]:
    """Push and drain on one store, with the default settings."""
    left, over = jobs, asyncio.Event()

    def ran(_: Ran) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            over.set()

    queue = Queue(url, observe=ran)

    @queue.handle("nothing")
    async def nothing(number: int) -> None:
        return

    singles = jobs // 10

    async def pusher(count: int) -> None:
        for number in range(count):
            await nothing.push(number)

    async with queue:
        one = await _timed(pusher(singles))
        ten = await _timed(asyncio.gather(*(pusher(singles // 10) for _ in range(10))))
        rest = jobs - singles - singles // 10 * 10
        many = await _timed(nothing.push_many(range(rest)))
        workers = asyncio.create_task(queue.run())
        drain = await _timed(over.wait())
        workers.cancel()
        await asyncio.wait({workers})
    return [
        Row(store, "push, one caller", singles / one, raw and raw.single),
        Row(store, "push, ten callers", singles / ten, raw and raw.single),
        Row(store, f"push_many of {rest}", rest / many, raw and raw.many),
        Row(store, "drain, default settings", jobs / drain, raw and raw.drain),
    ]


async def _timed(work: Awaitable[object]) -> float:
    begun = time.perf_counter()
    await work
    return time.perf_counter() - begun


async def on_sqlite(folder: Path, jobs: int) -> list[Row]:
    """SQLite with its default settings, and one table of its own for the bare figures."""
    raw = sqlite3.connect(folder / "raw.db", isolation_level=None)
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute("CREATE TABLE raw (id INTEGER PRIMARY KEY, kind TEXT, payload TEXT, run_at INT, held INT DEFAULT 0)")
    raw.execute("CREATE INDEX line ON raw (run_at, id) WHERE held = 0")
    insert = "INSERT INTO raw (kind, payload, run_at) VALUES ('nothing', ?, 0)"
    begun = time.perf_counter()
    for number in range(jobs // 10):
        raw.execute(insert, (str(number),))
    single = jobs // 10 / (time.perf_counter() - begun)
    begun = time.perf_counter()
    raw.execute("BEGIN IMMEDIATE")
    raw.executemany(insert, [(str(number),) for number in range(jobs)])
    raw.execute("COMMIT")
    many = jobs / (time.perf_counter() - begun)
    take = f"SELECT id FROM raw WHERE held = 0 ORDER BY run_at, id LIMIT {BATCH}"
    begun, drained = time.perf_counter(), 0
    while True:
        raw.execute("BEGIN IMMEDIATE")
        taken = raw.execute(f"UPDATE raw SET held = 1 WHERE id IN ({take}) RETURNING id").fetchall()
        raw.execute("COMMIT")
        if not taken:
            break
        raw.execute("BEGIN IMMEDIATE")
        raw.executemany("DELETE FROM raw WHERE id = ?", taken)
        raw.execute("COMMIT")
        drained += len(taken)
    drain = drained / (time.perf_counter() - begun)
    raw.close()
    return await measured("sqlite", f"sqlite:///{folder / 'jobs.db'}", Raw(single, many, drain), jobs)


async def on_postgres(server: str, jobs: int) -> list[Row]:
    """PostgreSQL with its default settings, in a database that is dropped at the end."""
    try:
        admin = await asyncpg.connect(server)
    except OSError as error:
        print(f"postgres: {error}; FASTQUEUE_BENCH_POSTGRES names a server")
        return []
    name = f"fastqueue_bench_{os.getpid()}"
    await admin.execute(f"CREATE DATABASE {name}")
    url = f"{server.rpartition('/')[0]}/{name}"
    try:
        return await measured("postgres", url, await _raw_postgres(url, jobs), jobs)
    finally:
        await admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await admin.close()


async def _raw_postgres(url: str, jobs: int) -> Raw:
    raw = await asyncpg.connect(url)
    await raw.execute(
        "CREATE TABLE raw (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text, payload text, run_at bigint, "
        "held boolean NOT NULL DEFAULT false); CREATE INDEX line ON raw (run_at, id) WHERE NOT held"
    )
    insert = "INSERT INTO raw (kind, payload, run_at) VALUES ('nothing', $1, 0) RETURNING id"
    begun = time.perf_counter()
    for number in range(jobs // 10):
        await raw.fetchval(insert, str(number))
    single = jobs // 10 / (time.perf_counter() - begun)
    begun = time.perf_counter()
    texts = [str(number) for number in range(jobs)]
    await raw.execute("INSERT INTO raw (kind, payload, run_at) SELECT 'nothing', t, 0 FROM unnest($1::text[]) t", texts)
    many = jobs / (time.perf_counter() - begun)
    take = f"SELECT id FROM raw WHERE NOT held ORDER BY run_at, id LIMIT {BATCH} FOR UPDATE SKIP LOCKED"
    claim = f"UPDATE raw SET held = true WHERE id IN ({take}) RETURNING id"
    begun, drained = time.perf_counter(), 0
    while taken := await raw.fetch(claim):
        await raw.execute("DELETE FROM raw WHERE id = ANY($1::bigint[])", [row["id"] for row in taken])
        drained += len(taken)
    drain = drained / (time.perf_counter() - begun)
    await raw.close()
    return Raw(single, many, drain)


if __name__ == "__main__":
    main()

"""What the bare database does: the same work with nothing around it, to be compared with."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import asyncpg

from tests.benchmarks.contender import Contender

__all__ = ["RAW"]


class RawPostgres(Contender):
    """asyncpg on one table: each batch is claimed, run in one task a job, and deleted."""

    name, store, tuned = "raw", "postgres", "batch of 500"

    async def open(self) -> None:
        self.free = [await asyncpg.connect(self.url) for _ in range(10)]
        self.one = self.free[0]
        await self.one.execute(
            "CREATE TABLE IF NOT EXISTS raw (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text NOT NULL, "
            "payload text NOT NULL, run_at bigint NOT NULL, held_until bigint, attempts int NOT NULL DEFAULT 0); "
            "CREATE INDEX IF NOT EXISTS line ON raw (run_at, id) WHERE held_until IS NULL"
        )

    async def close(self) -> None:
        for connection in self.free:
            await connection.close()

    async def push(self, number: int) -> None:
        connection = self.free.pop()
        try:
            await connection.fetchval(
                "INSERT INTO raw (kind, payload, run_at) VALUES ('nothing', $1, 0) RETURNING id", str(number)
            )
        finally:
            self.free.append(connection)

    async def push_many(self, numbers: Sequence[int]) -> None:
        await self.one.execute(
            "INSERT INTO raw (kind, payload, run_at) SELECT 'nothing', t, 0 FROM unnest($1::text[]) t",
            [str(number) for number in numbers],
        )

    async def work(self, *, tuned: bool) -> None:
        batch = 500 if tuned else 100
        claim = (
            "UPDATE raw SET held_until = 1, attempts = attempts + 1 WHERE id IN (SELECT id FROM raw "
            f"WHERE held_until IS NULL AND run_at <= 1 ORDER BY run_at, id LIMIT {batch} FOR UPDATE SKIP LOCKED) "
            "RETURNING id, kind, payload, run_at, attempts"
        )
        while taken := await self.one.fetch(claim):
            await run_each([row["payload"] for row in taken])
            await self.one.execute("DELETE FROM raw WHERE id = ANY($1::bigint[])", [row["id"] for row in taken])
            for row in taken:
                self.ran(int(row["payload"]))
        await asyncio.get_running_loop().create_future()


class RawSQLite(Contender):
    """sqlite3 on one table: each transaction deletes a batch that was run and claims the next."""

    name, store, tuned = "raw", "sqlite", "batch of 100"

    async def open(self) -> None:
        self.connection = sqlite3.connect(self.url.removeprefix("sqlite:///"), isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute(
            "CREATE TABLE IF NOT EXISTS raw (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, payload TEXT NOT NULL, "
            "run_at INT NOT NULL, held_until INT, attempts INT NOT NULL DEFAULT 0)"
        )
        self.connection.execute("CREATE INDEX IF NOT EXISTS line ON raw (run_at, id) WHERE held_until IS NULL")

    async def close(self) -> None:
        self.connection.close()

    async def push(self, number: int) -> None:
        self.connection.execute("INSERT INTO raw (kind, payload, run_at) VALUES ('nothing', ?, 0)", (str(number),))

    async def push_many(self, numbers: Sequence[int]) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        rows = [(str(number),) for number in numbers]
        self.connection.executemany("INSERT INTO raw (kind, payload, run_at) VALUES ('nothing', ?, 0)", rows)
        self.connection.execute("COMMIT")

    async def work(self, *, tuned: bool) -> None:
        claim = (
            "UPDATE raw SET held_until = 1, attempts = attempts + 1 WHERE id IN (SELECT id FROM raw "
            "WHERE held_until IS NULL AND run_at <= 1 ORDER BY run_at, id LIMIT 100) RETURNING id, payload"
        )
        done: list[tuple[int, str]] = []
        while True:
            self.connection.execute("BEGIN IMMEDIATE")
            self.connection.executemany("DELETE FROM raw WHERE id = ?", [(id,) for id, _ in done])
            taken: list[tuple[int, str]] = self.connection.execute(claim).fetchall()
            self.connection.execute("COMMIT")
            for _, payload in done:
                self.ran(int(payload))
            if not taken:
                break
            await run_each([payload for _, payload in taken])
            done = taken
        await asyncio.get_running_loop().create_future()


async def run_each(payloads: Sequence[str]) -> None:
    """One task a job."""

    async def nothing(number: int) -> None:
        return

    loads: Callable[[str], Any] = json.loads
    await asyncio.gather(*(asyncio.create_task(nothing(loads(payload))) for payload in payloads))


RAW: dict[str, type[Contender]] = {"postgres": RawPostgres, "sqlite": RawSQLite}

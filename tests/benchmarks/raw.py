"""What the bare database does: the same work with nothing around it, to be compared with."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import asyncpg

from tests.benchmarks.contender import Contender, load

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


class RawMySQL(Contender):
    """asyncmy on one table: each batch is locked, held, run in one task a job, and deleted."""

    name, store, tuned = "raw", "mysql", "batch of 500"

    async def open(self) -> None:
        place = urlsplit(self.url)
        self.free = [
            await load("asyncmy").connect(
                host=place.hostname, port=place.port, user=place.username, db=place.path[1:], autocommit=True
            )
            for _ in range(10)
        ]
        await self._do(
            self.free[0],
            "CREATE TABLE IF NOT EXISTS raw (id bigint AUTO_INCREMENT PRIMARY KEY, kind varchar(200) NOT NULL, "
            "payload text NOT NULL, run_at bigint NOT NULL, held_until bigint NOT NULL DEFAULT 0, "
            "attempts int NOT NULL DEFAULT 0, KEY line (held_until, run_at, id))",
        )

    async def close(self) -> None:
        for connection in self.free:
            await connection.ensure_closed()

    async def push(self, number: int) -> None:
        connection = self.free.pop()
        try:
            await self._do(connection, f"INSERT INTO raw (kind, payload, run_at) VALUES ('nothing', '{number}', 0)")
        finally:
            self.free.append(connection)

    async def push_many(self, numbers: Sequence[int]) -> None:
        rows = ", ".join(f"('nothing', '{number}', 0)" for number in numbers)
        await self._do(self.free[0], f"INSERT INTO raw (kind, payload, run_at) VALUES {rows}")

    async def work(self, *, tuned: bool) -> None:
        batch, connection = 500 if tuned else 100, self.free[0]
        await self._do(connection, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        look = (
            "SELECT id, payload FROM raw WHERE held_until = 0 AND run_at <= 1 ORDER BY run_at, id "
            f"LIMIT {batch} FOR UPDATE SKIP LOCKED"
        )
        while True:
            await self._do(connection, "BEGIN")
            taken = await self._do(connection, look)
            ids = ", ".join(str(id) for id, _ in taken) or "0"
            await self._do(connection, f"UPDATE raw SET held_until = 1, attempts = attempts + 1 WHERE id IN ({ids})")
            await self._do(connection, "COMMIT")
            if not taken:
                break
            await run_each([payload for _, payload in taken])
            await self._do(connection, f"DELETE FROM raw WHERE id IN ({ids})")
            for _, payload in taken:
                self.ran(int(payload))
        await asyncio.get_running_loop().create_future()

    @staticmethod
    async def _do(connection: Any, statement: str) -> Any:
        async with connection.cursor() as cursor:
            await cursor.execute(statement)
            return await cursor.fetchall()


async def run_each(payloads: Sequence[str]) -> None:
    """One task a job."""

    async def nothing(number: int) -> None:
        return

    loads: Callable[[str], Any] = json.loads
    await asyncio.gather(*(asyncio.create_task(nothing(loads(payload))) for payload in payloads))


RAW: dict[str, type[Contender]] = {"postgres": RawPostgres, "sqlite": RawSQLite, "mysql": RawMySQL}

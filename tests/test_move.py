"""All jobs of one store to another: whole, once, and whatever stops the move."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fastqueue.errors import MoveRefused, Unsupported
from fastqueue.job import Claimed, Moment, NewJob, StoredJob
from fastqueue.move import Moved, move
from fastqueue.moves import Moves, Portion
from fastqueue.outcome import Settlement
from fastqueue.store import Store
from fastqueue.stores import store_of
from fastqueue.stores.memory import MemoryStore
from fastqueue.stores.mysql import MySQLStore
from fastqueue.stores.postgres import PostgresStore
from fastqueue.stores.sqlite import SQLiteStore

NOW = 1_788_264_000_000
"""2026-09-01 12:00 UTC."""

PAIRS = [(a, b) for a in ("sqlite", "postgres", "mysql") for b in ("sqlite", "postgres", "mysql")]
ROUND = [("sqlite", "postgres"), ("postgres", "mysql"), ("mysql", "sqlite")]


def made(name: str, url: str, prefix: str = "fastqueue_") -> Store:
    """A store in a database, which may hold another one with other names of tables."""
    if name == "sqlite":
        return SQLiteStore(url.removeprefix("sqlite:///"), prefix=prefix)
    return (PostgresStore if name == "postgres" else MySQLStore)(url, prefix=prefix)


@pytest.fixture
async def stores(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Store, Store]]:
    """The two stores of a pair, open."""
    source, target = request.param
    both = (
        made(source, request.getfixturevalue(f"{source}_url")),
        made(target, request.getfixturevalue(f"{target}_url"), prefix="other_"),
    )
    for store in both:
        await store.open()
    yield both
    for store in both:
        await store.close()


def each(pairs: list[tuple[str, str]]) -> pytest.MarkDecorator:
    """The test once for each pair of stores."""
    return pytest.mark.parametrize("stores", pairs, indirect=True, ids=lambda pair: "-".join(pair))


async def everything(store: Store) -> list[StoredJob]:
    """All jobs of a store."""
    return await store.jobs(now=NOW, limit=10_000)


async def claimed(store: Store, *kinds: str, limit: int = 100, at: Moment = NOW) -> list[Claimed]:
    """Claim jobs."""
    return (await store.claim(at, token=11, limit=limit, queues=None, kinds=kinds)).jobs


async def fill(store: Store) -> None:
    """Jobs in every state but held, with everything that a push may ask."""
    await store.push([NewJob(kind="fails", payload=f"{n}", run_at=NOW) for n in range(7)], now=NOW)
    gone = await claimed(store, "fails")
    await store.settle([Settlement.fail(job, at=NOW + job.id, error="550 ünknown 📮") for job in gone])
    await store.push([NewJob(kind="tried", payload=f"{n}", run_at=NOW) for n in range(3)], now=NOW)
    await store.settle([Settlement.retry(job, at=NOW + 5, error="once") for job in await claimed(store, "tried")])
    await store.push(
        [
            NewJob(
                kind="mail",
                payload=f'"{n} ünique\\n"',
                run_at=NOW + n % 3,
                queue=("default", "low")[n % 2],
                hold_ms=5_000 + n,
                options='{"attempts":3}',
                unique_key=f"key {n}" if n % 4 else None,
                alone_key="alone" if n % 5 == 0 else None,
                at_once=n % 3,
                carried='{"request_id":"r"}',
                schedule="nightly",
            )
            for n in range(60)
        ],
        now=NOW,
    )
    assert store.schedules is not None
    await store.schedules.push_run("hourly", NewJob(kind="hourly", payload="null", run_at=NOW + 9), now=NOW)


@each(PAIRS)
async def test_every_job_goes_over_whole(stores: tuple[Store, Store]) -> None:
    source, target = stores
    await fill(source)
    before = await everything(source)
    told: list[int] = []

    tried = await move(source, target, dry_run=True)
    assert await everything(source) == before
    assert await everything(target) == []
    moved = await move(source, target, portion=30, progress=told.append)

    assert tried == moved == Moved(len(before), 1, 0)
    assert told == [30, 60, 71]
    assert await everything(source) == []
    assert await everything(target) == before
    assert target.schedules is not None
    assert await target.schedules.recorded() == {"hourly": NOW + 9}
    (pushed,) = await target.push([NewJob(kind="mail", payload="1", run_at=NOW)], now=NOW)
    assert pushed.id > before[-1].id
    lanes = {(lane.queue, lane.kind, lane.mode) for lane in await target.lanes()}
    assert {(job.queue, job.kind) for job in before if job.failed_ms is None} <= {lane[:2] for lane in lanes}
    assert len(await claimed(target, "tried", "hourly", at=NOW + 10)) == 4


@each(ROUND)
async def test_what_workers_hold_is_left_and_goes_over_later(stores: tuple[Store, Store]) -> None:
    source, target = stores
    await source.push([NewJob(kind="mail", payload=f"{n}", run_at=NOW, hold_ms=10**12) for n in range(4)], now=NOW)
    held = await claimed(source, "mail", limit=2)

    assert await move(source, target) == Moved(2, 0, 2)
    assert await source.settle([Settlement.retry(job, at=NOW, error="later") for job in held]) == [True, True]
    assert await move(source, target) == Moved(2, 0, 0)
    assert [job.error for job in await everything(target)] == ["later", "later", None, None]


class Stopped(Exception):
    """The move is stopped here."""


class Brittle(Moves):
    """Moves that stop after so many calls, before or after the last one is done."""

    def __init__(self, moves: Moves, calls: list[int], after: bool) -> None:
        self._moves, self._calls, self._after = moves, calls, after

    async def _call(self, verb: Callable[[], Any]) -> Any:
        self._calls[0] -= 1
        if self._calls[0] == 0 and not self._after:
            raise Stopped
        answer = await verb()
        if self._calls[0] == 0:
            raise Stopped
        return answer

    async def identity(self) -> str:
        return await self._moves.identity()

    async def leave(self, to: str, *, now: Moment, limit: int) -> Portion | None:
        found: Portion | None = await self._call(lambda: self._moves.leave(to, now=now, limit=limit))
        return found

    async def left(self, number: int) -> None:
        await self._call(lambda: self._moves.left(number))

    async def arrive(self, portion: Portion, *, origin: str) -> bool:
        return bool(await self._call(lambda: self._moves.arrive(portion, origin=origin)))

    async def record(self, runs: Mapping[str, Moment]) -> None:
        await self._call(lambda: self._moves.record(runs))


@asynccontextmanager
async def stopping(stores: tuple[Store, Store], calls: int, *, after: bool) -> AsyncGenerator[None]:
    """Both stores stop the move at the same count of calls."""
    whole = [store.moves for store in stores]
    left = [calls]
    for store, moves in zip(stores, whole, strict=True):
        assert moves is not None
        store.moves = Brittle(moves, left, after)
    yield
    for store, moves in zip(stores, whole, strict=True):
        store.moves = moves


async def run_all(store: Store, runs: Counter[str]) -> None:
    """Run what is due, as a worker does."""
    while jobs := await claimed(store, "mail"):
        runs.update(job.payload for job in jobs)
        assert all(await store.settle([Settlement.done(job) for job in jobs]))


@each(ROUND)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_move_that_was_stopped_anywhere_goes_on(stores: tuple[Store, Store], after: bool) -> None:
    source, target = stores
    runs: Counter[str] = Counter()
    pushed = 0
    for calls in range(1, 9):
        await source.push([NewJob(kind="mail", payload=f"{pushed + n}", run_at=NOW) for n in range(5)], now=NOW)
        pushed += 5
        async with stopping(stores, calls, after=after):
            with pytest.raises(Stopped):
                await move(source, target, portion=2)
        # Workers on both sides meanwhile: what has arrived is run there, what has not left is run here.
        await run_all(target, runs)
        if calls % 2:
            await run_all(source, runs)
        await source.push([NewJob(kind="mail", payload=f"{pushed}", run_at=NOW)], now=NOW)
        pushed += 1
        await move(source, target, portion=2)
        await run_all(target, runs)

    assert runs == Counter({f"{n}": 1 for n in range(pushed)})
    assert await everything(source) == await everything(target) == []


MOVER = """
import asyncio, sys
from fastqueue.move import move
from fastqueue.stores import store_of

async def main() -> None:
    source, target = map(store_of, sys.argv[1:])
    await source.open(); await target.open()
    await move(source, target, portion=20, progress=lambda jobs: print(jobs, flush=True))

asyncio.run(main())
"""


@pytest.mark.processes
@pytest.mark.parametrize(("source", "target"), ROUND)
@pytest.mark.parametrize("portions", [1, 7])
async def test_a_move_that_was_killed_goes_on(
    source: str, target: str, portions: int, request: pytest.FixtureRequest
) -> None:
    urls = [request.getfixturevalue(f"{name}_url") for name in (source, target)]
    old, new = map(store_of, urls)
    await old.open()
    await old.push([NewJob(kind="mail", payload=f"{n}", run_at=NOW) for n in range(400)], now=NOW)

    mover = await asyncio.create_subprocess_exec(
        *[sys.executable, "-c", MOVER, *urls],
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert mover.stdout is not None
    for _ in range(portions):
        await mover.stdout.readline()
    mover.kill()
    await mover.wait()
    await new.open()
    runs: Counter[str] = Counter()
    await run_all(new, runs)
    assert len(runs) >= 20 * portions
    await move(old, new)
    await run_all(new, runs)

    assert runs == Counter({f"{n}": 1 for n in range(400)})
    assert await everything(old) == []
    await old.close()
    await new.close()


@each(ROUND)
async def test_pushes_go_on_while_jobs_are_moved(stores: tuple[Store, Store]) -> None:
    source, target = stores
    runs: Counter[str] = Counter()
    moved = asyncio.Event()

    async def push() -> int:
        number = 0
        while not moved.is_set():
            for store in (source, target):
                await store.push([NewJob(kind="mail", payload=f"{number}", run_at=NOW)], now=NOW)
                number += 1
        return number

    await source.push([NewJob(kind="mail", payload=f"first {n}", run_at=NOW) for n in range(60)], now=NOW)
    pushing = asyncio.create_task(push())
    try:
        for _ in range(3):
            await asyncio.wait_for(move(source, target, portion=10_000), 60)
    finally:
        moved.set()
        number = await pushing
    await move(source, target)
    await run_all(target, runs)

    assert runs == Counter([f"{n}" for n in range(number)] + [f"first {n}" for n in range(60)])


@each(ROUND)
async def test_two_moves_at_once_move_each_job_once(stores: tuple[Store, Store]) -> None:
    source, target = stores
    runs: Counter[str] = Counter()
    await source.push([NewJob(kind="mail", payload=f"{n}", run_at=NOW) for n in range(100)], now=NOW)

    await asyncio.gather(*(move(source, target, portion=10) for _ in range(3)))
    await run_all(target, runs)

    assert runs == Counter({f"{n}": 1 for n in range(100)})


async def test_stores_between_which_nothing_can_move_are_refused() -> None:
    store, other = MemoryStore(), MemoryStore()
    with pytest.raises(MoveRefused, match="one store"):
        await move(store, store.again())
    other.moves = None
    with pytest.raises(Unsupported, match="no way to move"):
        await move(store, other)
    poor = MemoryStore()
    poor.keeps = frozenset()
    with pytest.raises(Unsupported, match="does not keep"):
        await move(store, poor)
    await move(poor, store)

"""One measure of one contender, in a process of its own: `python -m tests.benchmarks.case '{...}'` prints rows."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import asyncpg
import uvicorn

from fastqueue.job import NewJob
from fastqueue.outcome import Settlement
from fastqueue.stores._rows import NEVER
from tests.benchmarks.contender import Contender, Ours
from tests.benchmarks.peers import PEERS
from tests.benchmarks.raw import RAW
from tests.benchmarks.visitor import hello

__all__ = ["Row"]

TICK = 0.001
LATENCIES = 200
IDLE = 10
CLAIMS = 30
NOW = 1_788_264_000_000
TOMORROW = 4_000_000_000_000


class Row(NamedTuple):
    """A figure: of whom, on which store, what, how much, and in which unit."""

    who: str
    store: str
    measure: str
    value: float
    unit: str


class Case:
    """A contender, and how many of its jobs have run."""

    def __init__(self, who: str, store: str, url: str, jobs: int, limit: str = "none") -> None:
        kind = Ours if who == "fastqueue" else RAW[store] if who == "raw" else PEERS[who]
        self.contender: Contender = kind(url, self._begin, self._end)
        if isinstance(self.contender, Ours):
            self.contender.limit = limit
        self.who, self.store, self.url, self.jobs = who, store, url, jobs
        self.began: dict[int, int] = {}
        self._left, self._over = 0, asyncio.Event()

    def _begin(self, number: int) -> None:
        self.began[number] = time.monotonic_ns()

    def _end(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._over.set()

    def row(self, measure: str, value: float, unit: str = "jobs/s") -> Row:
        return Row(self.who, self.store, measure, value, unit)

    async def push(self) -> list[Row]:
        """One caller, ten at once, and a thousand in a call."""

        async def pusher(count: int) -> None:
            for number in range(count):
                await self.contender.push(number)

        async def bulk() -> None:
            for start in thousands:
                await self.contender.push_many(range(start, start + 1000))

        thousands = range(0, self.jobs, 1000)

        await pusher(20)
        few = max(self.jobs // 20, 200)
        one = await timed(pusher(few))
        ten = await timed(asyncio.gather(*(pusher(few // 10 * 3) for _ in range(10))))
        return [
            self.row("push, one caller", few / one),
            self.row("push, ten callers", few // 10 * 30 / ten),
            self.row("push, 1,000 in a call", len(thousands) * 1000 / await timed(bulk())),
        ]

    async def fill(self, jobs: int) -> None:
        for start in range(0, jobs, 1000):
            await self.contender.push_many(range(start, min(start + 1000, jobs)))

    async def drain(self, measure: str = "drain, defaults", *, tuned: bool = False) -> list[Row]:
        """From the worker's start until the last job has run; and what the process used meanwhile."""
        await self.fill(self.jobs)
        self._left = self.jobs
        cpu, lags = time.process_time(), list[float]()
        async with beside(self.contender.work(tuned=tuned)), beside(lag(lags)):
            seconds = await timed(self._over.wait())
        used = time.process_time() - cpu
        lags.sort()
        rows = [self.row(measure, self.jobs / seconds)]
        if self.contender.works_elsewhere:
            return rows
        rows.append(self.row(f"{measure}: CPU a job", used / self.jobs * 1e6, "µs"))
        if not tuned and measure == "drain, defaults":
            rows.append(self.row("loop lag in a drain, p95", lags[int(len(lags) * 0.95)] * 1000, "ms"))
            rows.append(self.row("memory of the worker", memory(), "MiB"))
        return rows

    async def snapshot(self) -> list[Row]:
        """A drain while another session holds an old snapshot, from before the jobs were pushed."""
        other = await asyncpg.connect(self.url)
        await other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await other.fetchval("SELECT count(*) FROM pg_class")
        rows = await self.drain("drain, old snapshot held")
        await other.close()
        return rows[:1]

    async def growth(self, waiting: int) -> list[Row]:
        """A drain beside jobs that wait: half of them for tomorrow, half for a kind that nobody here knows."""
        await self.others(waiting // 2, kind="nothing", due=TOMORROW)
        await self.others(waiting // 2, kind="unknown")
        return (await self.drain(f"drain, {waiting:,} more waiting"))[:1]

    async def failures(self, waiting: int) -> list[Row]:
        """A drain beside jobs that have failed."""
        await self.others(waiting, kind="nothing", due=NEVER, failed=True)
        return (await self.drain(f"drain, {waiting:,} failed"))[:1]

    async def others(
        self, jobs: int, *, kind: str, due: int = 0, failed: bool = False, mode: int = 0, held: int = 0
    ) -> None:
        """Put jobs into fastqueue's table, as they are after their push, their failure or their claim."""
        admin = await asyncpg.connect(self.url)
        await admin.execute(
            "INSERT INTO fastqueue_jobs (queue, kind, mode, run_at, due, held_until, hold_ms, payload, failed_at, "
            f"created_at) SELECT 'default', '{kind}', {mode}, 0, {due}, {held or NEVER}, 120000, '1', "
            f"{0 if failed else 'NULL'}, 0 FROM generate_series(1, {jobs})"
        )
        await admin.execute("VACUUM ANALYZE fastqueue_jobs")
        await admin.close()

    async def heads(self, waiting: int) -> list[Row]:
        """Claims of a hundred behind jobs that cannot be claimed: of an unknown, a held-back and a full kind."""
        assert isinstance(self.contender, Ours)
        store, found = self.contender.queue.store, list[Row]()
        assert store.holds is not None
        full, unknown, back = "a full", "an unknown", "a held-back"
        for what in ("no", unknown, back, full):
            if what == full:
                await self.others(5, kind="full", mode=10, due=NEVER, held=TOMORROW)
            if what != "no":
                await self.others(waiting, kind=what.split()[1], mode=10 if what == full else 0)
            if what == back:
                await store.push([NewJob(kind="held-back", payload="1", run_at=0)], now=0)
                claim = await store.claim(NOW, token=1, limit=1, queues=None, kinds={"held-back"})
                await store.holds.hold_back(claim.jobs[0], until=TOMORROW)
            took = list[float]()
            await self.others(100 * CLAIMS, kind="other", due=1)
            for token in range(2, 2 + CLAIMS):
                begun = time.perf_counter()
                claim = await store.claim(
                    NOW, token=token, limit=100, queues=None, kinds={"full", "held-back", "other", "nothing"}
                )
                took.append((time.perf_counter() - begun) * 1000)
                assert len(claim.jobs) == 100
                assert {job.kind for job in claim.jobs} == {"other"}
                await store.settle([Settlement.done(job) for job in claim.jobs])
            found.append(self.row(f"claim of 100 behind {waiting:,} of {what} kind", median(took), "ms"))
        return found

    async def web(self) -> list[Row]:
        """Requests to a server in the same process, one after the other from another: idle, and beside a drain."""
        server = uvicorn.Server(uvicorn.Config(hello, port=0, log_level="error"))
        async with beside(server.serve()):
            while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            await self.fill(self.jobs)
            idle = await self.visited(port)
            self._left = self.jobs
            async with beside(self.contender.work(tuned=False)):
                busy = await self.visited(port)
                assert self._left > 0, "the drain was over before the visit"
                await self._over.wait()
            server.should_exit = True
        return [
            self.row("requests beside a drain, to idle", len(busy) / len(idle), "x"),
            self.row("requests, idle: p95", idle[len(idle) * 95 // 100], "ms"),
            self.row("requests beside a drain: p95", busy[len(busy) * 95 // 100], "ms"),
        ]

    async def visited(self, port: int) -> list[float]:
        """The milliseconds of each request that another process made, sorted."""
        command = [sys.executable, "-m", "tests.benchmarks.visitor", str(port)]
        other = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        told, _ = await other.communicate()
        return sorted(json.loads(told))

    async def committed(self) -> list[Row]:
        """From the return of a transaction in another process to the handler's start here."""
        self._left = LATENCIES
        async with beside(self.contender.work(tuned=False)):
            await asyncio.sleep(1)
            there = await self.waits_of("committer")
        return [
            self.row("pick-up after a commit elsewhere, p50", there[len(there) // 2], "ms"),
            self.row("pick-up after a commit elsewhere, p99", there[len(there) * 99 // 100], "ms"),
        ]

    async def waits_of(self, pusher: str) -> list[float]:
        """The waits of jobs that another process pushes."""
        asked = json.dumps({"who": self.who, "store": self.store, "url": self.url, "jobs": 0, "measure": pusher})
        command = [sys.executable, "-m", "tests.benchmarks.case", asked]
        other = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        told, _ = await other.communicate()
        await self._over.wait()
        return waits({int(number): at for number, at in json.loads(told).items()}, self.began)

    async def committer(self) -> None:
        """The other process of a pick-up after a commit."""
        assert isinstance(self.contender, Ours)
        returned: dict[int, int] = {}
        for number in range(LATENCIES):
            async with self.contender.queue.transaction() as transaction:
                await self.contender.plain.in_(transaction).push(number)
            returned[number] = time.monotonic_ns()
            await asyncio.sleep(0.01)
        print(json.dumps(returned))

    async def pickup(self) -> list[Row]:
        """From the return of a push to the handler's start, idle workers: in one process, and from another."""
        self._left = 1
        async with beside(self.contender.work(tuned=False)):
            await self.contender.push(-1)
            await self._over.wait()
            await asyncio.sleep(1)
            returned: dict[int, int] = {}
            self._left, self._over = LATENCIES, asyncio.Event()
            for number in range(LATENCIES):
                await self.contender.push(number)
                returned[number] = time.monotonic_ns()
                await asyncio.sleep(0.01)
            await self._over.wait()
            here = waits(returned, self.began)
            self.began.clear()
            self._left, self._over = LATENCIES, asyncio.Event()
            there = await self.waits_of("pusher")
        return [
            self.row("pick-up in the same process, p50", here[len(here) // 2], "ms"),
            self.row("pick-up from another process, p50", there[len(there) // 2], "ms"),
            self.row("pick-up from another process, p99", there[len(there) * 99 // 100], "ms"),
        ]

    async def pusher(self) -> None:
        """The other process of a pick-up: print when each push returned."""
        returned: dict[int, int] = {}
        for number in range(LATENCIES):
            await self.contender.push(number)
            returned[number] = time.monotonic_ns()
            await asyncio.sleep(0.01)
        print(json.dumps(returned))

    async def idle(self) -> list[Row]:
        """Transactions of a worker that has nothing to do."""
        watching = await asyncpg.connect(self.url)

        async def transactions() -> int:
            query = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
            before = await watching.fetchval(query)
            await asyncio.sleep(IDLE)
            return int(await watching.fetchval(query) - before)

        of_the_server = await transactions()
        async with beside(self.contender.work(tuned=False)):
            await asyncio.sleep(3)
            of_both = await transactions()
        await watching.close()
        return [self.row("transactions of an idle worker", (of_both - of_the_server) / IDLE, "/s")]


def waits(returned: dict[int, int], began: dict[int, int]) -> list[float]:
    """Milliseconds from the push's return to the run, sorted; 0 where the run was first."""
    return sorted(max(began[number] - at, 0) / 1e6 for number, at in returned.items())


def memory() -> float:
    """What the process has in memory now, in MiB; its peak would count what its parent had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


async def timed(work: Awaitable[object]) -> float:
    begun = time.perf_counter()
    await work
    return time.perf_counter() - begun


async def lag(lags: list[float]) -> None:
    """How late the loop comes to a timer, each millisecond."""
    while True:
        begun = time.perf_counter()
        await asyncio.sleep(TICK)
        lags.append(time.perf_counter() - begun - TICK)


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Work in a task for the length of a block; an error of its own ends the process."""
    task, over = asyncio.create_task(work), False

    def ended(done: asyncio.Task[None]) -> None:
        if not (over or done.cancelled() or done.exception() is None):
            traceback.print_exception(done.exception())
            sys.exit(1)

    task.add_done_callback(ended)
    try:
        yield
    finally:
        over = True
        task.cancel()
        await asyncio.wait({task}, timeout=5)


async def measured(asked: dict[str, Any]) -> list[Row]:
    measure = asked.pop("measure")
    waiting = asked.pop("waiting", 0)
    case = Case(**asked)
    verbs: dict[str, Callable[[], Coroutine[Any, Any, list[Row] | None]]] = {
        "push": case.push,
        "drain": case.drain,
        "tuned": lambda: case.drain("drain, tuned", tuned=True),
        "tenth": lambda: case.drain("drain, a tenth limited"),
        "keys": lambda: case.drain("drain, each one at a time by its key"),
        "growth": lambda: case.growth(waiting),
        "snapshot": case.snapshot,
        "failures": lambda: case.failures(waiting),
        "heads": lambda: case.heads(waiting),
        "web": case.web,
        "pickup": case.pickup,
        "committed": case.committed,
        "committer": case.committer,
        "pusher": case.pusher,
        "idle": case.idle,
    }
    await case.contender.open()
    rows = await verbs[measure]()
    with suppress(Exception):
        await asyncio.wait_for(case.contender.close(), 5)
    return rows or []


def main() -> None:
    logging.disable(logging.WARNING)  # some write a line for each job
    rows = asyncio.run(measured(json.loads(sys.argv[1])))
    if rows:
        print(json.dumps(rows))
    sys.stdout.flush()


if __name__ == "__main__":
    main()

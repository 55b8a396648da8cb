"""What is done to a site under load, for so many seconds."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_FSIZE, prlimit
from typing import TypeAlias

from tests.faults.admin import end_some_connections, old_snapshot, take_every_connection
from tests.faults.proxy import Proxy
from tests.faults.site import Site
from tests.faults.worker import HOLD

__all__ = [
    "ON_ANY_STORE",
    "ON_A_SERVER",
    "ON_A_SERVER_OF_ITS_OWN",
    "ON_SQLITE",
    "ON_SQL_SERVERS",
    "Scenario",
    "scenarios_on",
]

MEMORY = 200 * 2**20
"""Bytes that a process may have before it is killed, as it is in a container."""

Scenario: TypeAlias = Callable[[Site, float], Awaitable[None]]


async def kills(site: Site, seconds: float) -> None:
    """One of the workers is killed each second."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        await asyncio.sleep(random.uniform(0.5, 1.5))
        await site.replace(random.choice(site.workers))


async def deploys(site: Site, seconds: float) -> None:
    """One worker after the other is told to end, as a rolling deploy does, and some twice."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        worker = site.workers[0]
        if random.random() < 0.5:
            worker.send_signal(signal.SIGTERM)
        await site.replace(worker, signal.SIGTERM)
        await asyncio.sleep(0.2)


async def freezes(site: Site, seconds: float) -> None:
    """One worker is stopped for longer than its holds, and goes on then as if nothing had been."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        worker, since = random.choice(site.workers), time.time()
        worker.send_signal(signal.SIGSTOP)
        await asyncio.sleep(HOLD * 1.5)
        worker.send_signal(signal.SIGCONT)
        # On SQLite it may have had the lock, and then all stood still with it.
        site.harmed(since, None if site.url.startswith("sqlite") else worker.pid)
        await site.until("end", 50)


async def leaks(site: Site, seconds: float) -> None:
    """Each run takes memory for good, and a process that has too much of it is killed."""
    site.leak = 2**20
    for worker in list(site.workers):
        await site.replace(worker, signal.SIGTERM)
    until, before = time.monotonic() + seconds, len(site.harms)
    while time.monotonic() < until or len(site.harms) == before:
        await asyncio.sleep(0.05)
        for worker in list(site.workers):
            if _memory(worker.pid) > MEMORY:
                await site.replace(worker)


async def clocks(site: Site, seconds: float) -> None:
    """Two more workers, whose clocks are ten minutes wrong each way."""
    since = time.time()
    site.workers += [site.process("works", wrong=600), site.process("works", wrong=-600)]
    await asyncio.sleep(seconds)
    site.harmed(since, doubles=False)


async def steps(site: Site, seconds: float) -> None:
    """The clocks of the processes are set forward and back by an hour as they run."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        since = time.time()
        random.choice(site.processes).send_signal(random.choice([signal.SIGUSR1, signal.SIGUSR2]))
        site.harmed(since, doubles=False)
        await site.until("end", 20)


async def cuts(site: Site, seconds: float) -> None:
    """The line to the server is cut, again and again, and cannot be had for a while."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        await asyncio.sleep(random.uniform(0.2, 1))
        since = time.time()
        _line(site).cut()
        await asyncio.sleep(random.choice([0, 0.2, 1]))
        _line(site).join()
        site.harmed(since)
        await site.until("end", 20)


async def silence(site: Site, seconds: float) -> None:
    """The line to the server swallows everything for longer than a hold, in one direction or both, and stays open."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        since = time.time()
        _line(site).hush(random.choice(["there", "back", "both"]))
        await asyncio.sleep(HOLD * 1.5)
        _line(site).cut()
        _line(site).join()
        site.harmed(since)
        await site.until("end", 20)


async def slow(site: Site, seconds: float) -> None:
    """Each packet takes its time."""
    since = time.time()
    _line(site).delay = 0.03
    await asyncio.sleep(seconds)
    _line(site).delay = 0
    site.harmed(since)


async def crashes(site: Site, seconds: float) -> None:
    """The server itself ends without warning, and is started again."""
    assert site.server is not None
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        await asyncio.sleep(random.uniform(0.2, 1))
        since = time.time()
        await asyncio.to_thread(site.server.end)
        await asyncio.sleep(random.choice([0, 1]))
        await asyncio.to_thread(site.server.start)
        site.harmed(since)
        await site.until("end", 20)


async def exhausted(site: Site, seconds: float) -> None:
    """Others take every connection that the server has for up to two seconds, the site's own among them."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        since = time.time()
        await asyncio.to_thread(take_every_connection, site.url, random.choice([0.5, 2]))
        site.harmed(since)
        await site.until("end", 20)
        await asyncio.sleep(random.uniform(0.2, 1))


async def terminations(site: Site, seconds: float) -> None:
    """Half of the database's connections are ended by an administrator, again and again."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        since = time.time()
        await asyncio.to_thread(end_some_connections, site.url)
        site.harmed(since)
        await site.until("end", 20)
        await asyncio.sleep(random.uniform(0.1, 0.5))


async def snapshot(site: Site, seconds: float) -> None:
    """Somebody's transaction holds an old snapshot all the time."""
    since = time.time()
    with old_snapshot(site.url):
        await asyncio.sleep(seconds)
    site.harmed(since, doubles=False)


async def full(site: Site, seconds: float) -> None:
    """The disk is full for a while, again and again: no file of any process grows beyond what the ledger needs."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        since = time.time()
        room = site.ledger.path.stat().st_size + 65536
        for process in site.processes:
            prlimit(process.pid, RLIMIT_FSIZE, (room, RLIM_INFINITY))
        await site.until("refused", 1)
        await asyncio.sleep(0.5)
        for process in site.processes:
            prlimit(process.pid, RLIMIT_FSIZE, (RLIM_INFINITY, RLIM_INFINITY))
        site.harmed(since)
        await site.until("end", 20)


def _memory(pid: int) -> int:
    """The bytes that a process has in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _line(site: Site) -> Proxy:
    assert site.line is not None
    return site.line


ON_SQLITE: tuple[Scenario, ...] = (full,)
ON_ANY_STORE: tuple[Scenario, ...] = (kills, leaks, deploys, freezes)
ON_A_SERVER: tuple[Scenario, ...] = (clocks, steps, cuts, silence, slow, terminations)
ON_SQL_SERVERS: tuple[Scenario, ...] = (snapshot,)
ON_A_SERVER_OF_ITS_OWN: tuple[Scenario, ...] = (exhausted, crashes)


def scenarios_on(store: str) -> tuple[Scenario, ...]:
    """All that can be done to a store."""
    if store == "sqlite":
        return *ON_ANY_STORE, *ON_SQLITE
    return *ON_ANY_STORE, *ON_A_SERVER, *(ON_SQL_SERVERS if store != "redis" else ()), *ON_A_SERVER_OF_ITS_OWN

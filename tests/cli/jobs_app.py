"""The app that the command is tried on; its store is named by the environment."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

from fastqueue import Queue, cron, every
from fastqueue.errors import Permanent

queue = Queue(os.environ["JOBS"], poll=0.1, grace=5)


@queue.handle("greet")
async def greet(name: str) -> None:
    print("hello", name, flush=True)


@queue.handle("refuse")
async def refuse(reason: str) -> None:
    raise Permanent(reason)


@queue.handle("slow", queue="later")
async def slow(seconds: float) -> None:
    print("slow begins", flush=True)
    await asyncio.sleep(seconds)
    print("slow ends", flush=True)


@queue.handle("record")
async def record(number: int) -> None:
    """Write a line to this process's own page of the ledger."""
    with (Path(os.environ["LEDGER"]) / str(os.getpid())).open("a") as page:
        page.write(f"{number}\n")


@queue.handle("die")
async def die(_: None) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@queue.handle("deaf", timeout=60)
async def deaf(_: None) -> None:
    print("deaf begins", flush=True)
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)


@queue.handle("flood")
async def flood(_: None) -> None:
    while True:
        print("more than a pipe holds" * 1000)


@queue.handle("once", unique=True)
async def once(name: str) -> None:
    print("once", name, flush=True)


@queue.handle("nightly")
async def nightly(_: None) -> None:
    print("nightly", file=sys.stderr)


nightly.schedule(cron("30 2 * * *", tz="Europe/Paris"), None)
nightly.schedule(every(3600), None, name="hourly")

app = SimpleNamespace(state=SimpleNamespace(queue=queue))
something = "else"

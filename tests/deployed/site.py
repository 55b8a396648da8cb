"""An app as it is deployed: a job for each request, and a ledger of its own that says what ran where.

Configured by the environment, as deployed apps are. The ledger has a page for each process, so that no two write into
one file.
"""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

from fastapi import FastAPI

import fastqueue.health
from fastqueue import Defaults, Queue, Run
from fastqueue.fastapi import RequestIDMiddleware, health, lifespan

LEDGER = Path(os.environ["LEDGER"])
fastqueue.health.HINT_AFTER = 0.1  # seconds; tests do not wait for ten

MARGIN = float(os.environ.get("MARGIN", "60"))

queue = Queue(os.environ["JOBS"], poll=0.2, grace=20, defaults=Defaults(margin=MARGIN))


def note_down(page: str, words: object) -> None:
    with (LEDGER / f"{page}.{os.getpid()}").open("a") as lines:
        lines.write(f"{words}\n")


@queue.handle("note")
async def note(number: int) -> None:
    note_down("ran", number)


@queue.handle("linger")
async def linger(number: int) -> None:
    """Runs until the test opens the gate."""
    note_down("begun", number)
    await gate()
    note_down("ran", number)


@queue.handle("block", timeout=1)
async def block(number: int, run: Run) -> None:
    """Blocks the first process that runs it, all its threads too, as a careless pattern does."""
    note_down("begun", number)
    if run.attempt == 1:
        re.match("(a+)+$", "a" * 100 + "b")
    note_down("ran", number)


async def gate() -> None:
    while not (LEDGER / "gate").exists():  # noqa: ASYNC110  another process opens it
        await asyncio.sleep(0.01)


app = FastAPI(lifespan=lifespan(queue, run=os.environ.get("RUN") != "no"))
app.add_middleware(RequestIDMiddleware)
app.add_route("/health", health(queue))


@app.get("/pid")
async def pid() -> int:
    return os.getpid()


@app.post("/notes/{number}")
async def push(number: int) -> int:
    return (await note.push(number)).id


@app.post("/slow/{number}")
async def push_slowly(number: int) -> int:
    """A request that is still at work when the server is told to stop."""
    note_down("serving", number)
    await gate()
    return (await note.push(number)).id


@app.post("/linger/{number}")
async def push_what_lingers(number: int) -> int:
    return (await linger.push(number)).id


@app.post("/block/{number}")
async def push_what_blocks(number: int) -> int:
    return (await block.push(number)).id


mounting = FastAPI()
mounting.mount("/jobs", app)

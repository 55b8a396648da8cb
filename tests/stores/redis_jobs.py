"""A Redis store with jobs, and what its server has and did."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from fastqueue.stores.redis import RedisStore
from tests.servers import redis
from tests.servers.fixtures import unavailable


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncGenerator[RedisStore]:
    """An open store."""
    store = RedisStore(url, **options)
    try:
        await store.open()
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def connected(url: str) -> AsyncGenerator[Redis]:
    """A client beside the store's."""
    async with Redis.from_url(url, decode_responses=True, protocol=2) as client:
        yield client


def binary() -> Path:
    """The server's program."""
    found = redis.system_binaries()
    if found is None:
        unavailable("redis", "install Redis; the server that FASTQUEUE_TEST_REDIS names will not do for this test")
    return found


@contextmanager
def own_server(*options: str) -> Generator[str]:
    """A server for one test alone."""
    with redis.launched(binary(), *options) as dsn:
        yield dsn


async def misplaced(admin: Redis, root: str = "{fastqueue}:") -> list[str]:
    """What is wrong with where jobs are: each on one shelf, and nothing kept about one that is gone."""

    async def names(of: str) -> set[str]:
        return {str(name).removeprefix(root) async for name in admin.scan_iter(f"{root}{of}:*")}

    async def members(of: str) -> set[str]:
        kind = await admin.type(root + of)
        return set(map(str, await (admin.smembers(root + of) if kind == "set" else admin.zrange(root + of, 0, -1))))

    jobs: dict[str, dict[str, str]] = {}
    for name in await names("job"):
        jobs[name.removeprefix("job:")] = {str(k): str(v) for k, v in (await admin.hgetall(root + name)).items()}
    shelves: Counter[str] = Counter()
    alone: set[tuple[str, str]] = set()
    wrong: list[str] = []
    for shelf in ("waiting", "held", "failed", "leaving"):
        lines = await names(shelf)
        if lines != {f"{shelf}:{lane}" for lane in await members(shelf)}:
            wrong.append(f"the lanes named for {shelf}")
        for line in lines:
            for member in await members(line):
                job = jobs.get(member[:16], {})
                shelves[member[:16]] += 1
                if f"{shelf}:{job.get('lane')}" != line or member[16:] != job.get("alone", ""):
                    wrong.append(f"{member} in {line}")
                if shelf == "held" and "alone" in job:
                    alone.add((line.split(":")[3], job["alone"]))
    if shelves != Counter(jobs.keys()) or await members("ids") != jobs.keys():
        wrong.append(f"jobs {sorted(jobs)}, on shelves {shelves}, listed {await members('ids')}")
    if alone != {(name.split(":")[1], key) for name in await names("alone") for key in await members(name)}:
        wrong.append("the keys of held jobs")
    waits = {
        (name.split(":")[1], str(key), str(id))
        for name in await names("waits")
        for key, id in (await admin.hgetall(root + name)).items()
    }
    if waits != {(job["lane"].split(":")[2], job["key"], id) for id, job in jobs.items() if "key" in job}:
        wrong.append("the keys that wait")
    return wrong

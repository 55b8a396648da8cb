"""Processes that push wake those that listen; a line that is cut is made again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fastqueue.outcome import Settlement
from fastqueue.stores.redis import RedisStore, _wakes
from tests.servers import redis
from tests.servers.throwaway import free_port
from tests.stores.jobs import NOW, Ear, claimed, job, listening, there, until
from tests.stores.redis_jobs import connected, opened, own_server

ROOT = Path(__file__).parents[2]


@pytest.fixture
async def store(redis_url: str) -> AsyncGenerator[RedisStore]:
    async with opened(redis_url) as store:
        yield store


@pytest.fixture
async def other(redis_url: str) -> AsyncGenerator[RedisStore]:
    async with opened(redis_url) as other:
        yield other


async def test_what_makes_a_job_due_wakes_the_others(store: RedisStore, other: RedisStore) -> None:
    async with listening(store) as ear:
        await other.push([job(1)], now=NOW)
        await ear.next()
        await other.push([job(2, at=NOW + 1), job(3)], now=NOW)
        await ear.next()
        await other.push([job(4, at=NOW + 9, unique_key="a", latest=True)], now=NOW)
        await other.push([job(4, at=NOW, unique_key="a", latest=True)], now=NOW)
        await ear.next()
        await there(other.schedules).push_run("nightly", job(6), now=NOW)
        await ear.next()
        [first, *_] = await claimed(other)
        await other.settle([Settlement.fail(first, at=NOW, error="broke")])
        await there(other.failed).run_again([first.id], at=NOW)
        await ear.next()
        await there(other.wakes).tell()
        await ear.next()
        assert ear.times == 1 + 6


async def test_a_job_for_later_and_what_adds_none_wake_nobody(store: RedisStore, other: RedisStore) -> None:
    await other.push([job(0, unique_key="a")], now=NOW)
    async with listening(store) as ear:
        await other.push([job(1, at=NOW + 1), job(2, at=NOW + 1), job(3, unique_key="a")], now=NOW)
        await there(other.schedules).push_run("nightly", job(3, at=NOW + 1), now=NOW)
        await there(other.failed).run_again([12345], at=NOW)
        assert ear.quiet
        await other.push([job(4)], now=NOW)
        await ear.next()
        assert ear.times == 2


async def test_stores_on_other_keys_or_in_another_database_hear_nothing(
    store: RedisStore, redis_server: str, redis_url: str
) -> None:
    with redis.fresh_database(redis_server) as elsewhere:
        async with opened(redis_url, prefix="b") as one, opened(elsewhere) as two, listening(store) as ear:
            for stranger in (one, two):
                await stranger.push([job()], now=NOW)
                await there(stranger.wakes).tell()
            await there(store.wakes).tell()
            await ear.next()
            assert ear.times == 2


@pytest.mark.processes
async def test_a_push_of_another_process_wakes_this_one(store: RedisStore, redis_url: str) -> None:
    script = f"""
import asyncio
from tests.stores.jobs import NOW, job
from tests.stores.redis_jobs import opened

async def push():
    async with opened({redis_url!r}) as store:
        await store.push([job(1)], now=NOW)

asyncio.run(push())
"""
    async with listening(store) as ear:
        done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", script], cwd=ROOT, capture_output=True)
        assert done.returncode == 0, done.stderr
        await ear.next()
        assert len(await claimed(store)) == 1


async def test_a_line_that_is_cut_is_made_again_and_wakes_for_what_was_missed() -> None:
    with own_server() as url:
        async with opened(url) as store, opened(url) as other, connected(url) as admin, listening(store) as ear:
            for _ in range(2):
                assert await admin.client_kill_filter(_type="pubsub") == 1
                await ear.next()
                await other.push([job()], now=NOW)
                await ear.next()
                assert there(store.wakes).up


async def test_the_line_is_gone_when_it_is_no_longer_wanted() -> None:
    with own_server() as url:
        async with opened(url) as store, connected(url) as admin:

            async def lines() -> int:
                return len(await admin.client_list(_type="pubsub"))

            async def none() -> bool:
                return await lines() == 0

            async with listening(store):
                assert await lines() == 1
            await until(none)


async def test_a_server_that_has_fallen_silent_is_asked_and_left(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_wakes, "LOOKS_AFTER", 0.01)
    monkeypatch.setattr(_wakes, "HEARS_WITHIN", 5.0)
    there_is = urlsplit(redis_url)
    answering = asyncio.Event()
    answering.set()
    asked = asyncio.Queue[bytes]()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(there_is.hostname, there_is.port)

        async def answers() -> None:
            while data := await from_server.read(65536):
                if answering.is_set():
                    writer.write(data)

        back = asyncio.create_task(answers())
        while data := await reader.read(65536):
            if b"PING" in data:
                asked.put_nowait(data)
            to_server.write(data)
        to_server.close()
        await back
        writer.close()

    server = await asyncio.start_server(carry, "127.0.0.1")
    address = there_is._replace(netloc=f"127.0.0.1:{server.sockets[0].getsockname()[1]}").geturl()
    async with opened(address) as store, listening(store) as ear:
        for _ in range(3):
            await asked.get()
        assert there(store.wakes).up
        monkeypatch.setattr(_wakes, "HEARS_WITHIN", 0.05)
        answering.clear()
        await until(lambda: not there(store.wakes).up)
        answering.set()
        await ear.next()
    server.close()


async def test_a_line_that_cannot_be_had_is_tried_for_in_growing_waits(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 40:
            raise asyncio.CancelledError

    store = RedisStore(f"redis://127.0.0.1:{free_port()}")
    monkeypatch.setattr(asyncio, "sleep", wait)
    with pytest.raises(asyncio.CancelledError):
        await there(store.wakes).listen(Ear())
    monkeypatch.undo()
    assert sum(waits) > 15
    assert max(waits) <= 1


async def test_a_notice_that_cannot_be_sent_is_no_error() -> None:
    store = RedisStore(f"redis://127.0.0.1:{free_port()}")
    await there(store.wakes).tell()
    store._access.connect()
    await there(store.wakes).tell()
    await store.close()

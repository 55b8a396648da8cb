"""Redis servers that are set wrong, full, restarted or lost; and answers that never come."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from redis.exceptions import RedisError, ResponseError

from fastqueue.errors import OptionError, SchemaTooNew, StoreUnavailable
from fastqueue.outcome import Settlement
from fastqueue.stores.redis import RedisStore
from tests.servers import redis
from tests.servers.throwaway import free_port, sandbox
from tests.stores.jobs import NOW, claimed, job, there, until
from tests.stores.redis_jobs import binary, connected, misplaced, opened, own_server


@pytest.fixture
def server() -> Iterator[str]:
    """One whose connections are this test's alone."""
    with own_server() as url:
        yield url


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--maxmemory-policy", "allkeys-lru"], "has maxmemory-policy allkeys-lru, .* set it to noeviction"),
        (["--cluster-enabled", "yes"], "is a cluster; give the store a single server"),
    ],
)
async def test_a_server_on_which_jobs_are_not_safe_is_refused(options: list[str], reason: str) -> None:
    with own_server(*options) as url:
        store = RedisStore(url)
        for _ in range(2):
            with pytest.raises(OptionError, match=f"Redis at redis://127.0.0.1:.* {reason}"):
                await store.open()
        with pytest.raises(StoreUnavailable, match="is not open"):
            await store.push([job()], now=NOW)


async def test_keys_of_a_newer_version_are_refused(redis_url: str) -> None:
    async with opened(redis_url), opened(redis_url), connected(redis_url) as admin:
        await admin.set("{fastqueue}:layout", 2)
        with pytest.raises(
            SchemaTooNew, match=r"\{fastqueue\}:\* .* are of layout 2 and .* knows 1: install the newer"
        ):
            await RedisStore(redis_url).open()


async def test_a_user_who_may_not_ask_for_settings_is_warned_and_served(caplog: pytest.LogCaptureFixture) -> None:
    with own_server() as url:
        async with connected(url) as admin:
            await admin.acl_setuser("app", True, passwords="+pw", keys=["{fastqueue}:*"], commands=["+@all", "-info"])
        async with opened(url.replace("//", "//app:pw@")) as store:
            # The user may not use any channel either: a notice that cannot be sent undoes no push.
            assert (await store.push([job()], now=NOW))[0].new
            await there(store.wakes).tell()
            assert len(await store.jobs(now=NOW)) == 1
    [record] = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "does not let its user ask INFO" in record.getMessage()


async def test_a_full_server_refuses_pushes_and_is_drained() -> None:
    with own_server() as url:
        async with opened(url) as store, connected(url) as admin:
            await store.push([job(n, unique_key=str(n), alone_key=str(n)) for n in range(100)], now=NOW)
            await admin.config_set("maxmemory", "1mb")
            for verb in (
                store.push([job()], now=NOW),
                there(store.schedules).push_run("nightly", job(), now=NOW),
                there(store.throttles).hit("door", now=NOW, window_ms=5),
            ):
                with pytest.raises(StoreUnavailable, match="maxmemory"):
                    await verb
            assert await there(store.schedules).recorded() == {}
            ended = 0
            while took := await claimed(store, 20):
                assert await store.renew(took, now=NOW, until=NOW + 5) == [True] * len(took)
                assert await store.give_back(took[:1]) == [True]
                failed = [Settlement.fail(each, at=NOW, error="x" * 100) for each in took[1:3]]
                assert await store.settle([*failed, *map(Settlement.done, took[3:])]) == [True] * (len(took) - 1)
                assert await there(store.failed).forget([each.id for each in took[1:3]]) == [True] * len(failed)
                ended += len(took) - 1
                if len(took) == 1:
                    break
            assert ended == 99
            assert await misplaced(admin) == []
            await admin.config_set("maxmemory", 0)
            assert (await store.push([job()], now=NOW))[0].new


async def test_jobs_outlast_a_server_that_is_killed_and_the_store_finds_the_next_one() -> None:
    port, server = free_port(), binary()
    log = ("--appendonly", "yes", "--appendfsync", "always")
    with sandbox() as box:
        with redis.serving(server, box, port, *log) as url:
            store = RedisStore(url)
            await store.open()
            await store.push([job(n, unique_key=str(n), alone_key="a") for n in range(3)], now=NOW)
            [first] = await claimed(store)
            async with connected(url) as admin:
                os.kill((await admin.info("server"))["process_id"], signal.SIGKILL)
            for _ in range(2):
                with pytest.raises(
                    StoreUnavailable, match=r"Redis at redis://127\.0\.0\.1:\d+/0 is not available"
                ) as lost:
                    await store.push([job(9)], now=NOW)
                assert isinstance(lost.value.__cause__, RedisError)
        with redis.serving(server, box, port, *log) as url:
            assert await claimed(store) == []
            assert await store.settle([Settlement.done(first)]) == [True]
            assert [each.id for each in await claimed(store)] == [2]
            async with connected(url) as admin:
                assert await misplaced(admin) == []
            await store.close()


async def test_idle_connections_that_the_server_has_closed_cost_nobody_an_error(server: str) -> None:
    async with opened(server) as store, connected(server) as admin:
        await asyncio.gather(*(store.push([job(n)], now=NOW) for n in range(8)))
        assert await admin.client_kill_filter(_type="normal", skipme=True) >= 1

        async def gone() -> bool:
            return len([each for each in await admin.client_list() if each["name"] == "fastqueue"]) == 0

        await until(gone)
        await asyncio.sleep(0)
        assert len(await asyncio.gather(*(store.push([job(n)], now=NOW) for n in range(8)))) == 8


async def test_a_server_that_does_not_answer_is_an_outage_that_shows_no_password() -> None:
    store = RedisStore(f"redis://app:s3cret@127.0.0.1:{free_port()}/1")
    with pytest.raises(StoreUnavailable, match=r"redis://app@127\.0\.0\.1:\d+/1 is not available") as refused:
        await store.open()
    assert "s3cret" not in str(refused.value)
    await store.close()


class Line:
    """The way to a server, which can be cut after a request has got through and before its answer comes back."""

    def __init__(self, url: str) -> None:
        self._there = urlsplit(url)
        self.deaf = False
        self.lost = asyncio.Event()

    @asynccontextmanager
    async def laid(self) -> AsyncGenerator[str]:
        server = await asyncio.start_server(self._connect, "127.0.0.1")
        port = server.sockets[0].getsockname()[1]
        try:
            yield self._there._replace(netloc=f"127.0.0.1:{port}").geturl()
        finally:
            server.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(self._there.hostname, self._there.port)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._carry(reader, to_server, back=False))
                both.create_task(self._carry(from_server, writer, back=True))
        except* OSError:
            pass
        finally:
            writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, back: bool) -> None:
        while data := await reader.read(65536):
            if back and self.deaf:
                self.lost.set()
                break
            writer.write(data)
            await writer.drain()
        writer.close()


async def test_a_push_whose_answer_is_lost_is_an_error_and_is_kept_once(redis_url: str) -> None:
    line = Line(redis_url)
    async with line.laid() as url, opened(url) as store, opened(redis_url) as other:
        await store.push([job(1)], now=NOW)
        line.deaf = True
        with pytest.raises(StoreUnavailable, match="is not available"):
            await store.push([job(2)], now=NOW)
        assert line.lost.is_set()
        line.deaf = False
        assert len(await other.jobs(now=NOW)) == 2
        assert [each.id for each in await claimed(store)] == [1, 2]


async def test_a_settle_whose_answer_is_lost_may_be_told_again(redis_url: str) -> None:
    line = Line(redis_url)
    async with line.laid() as url, opened(url) as store:
        await store.push([job(0), job(1), job(2)], now=NOW)
        first, one, two = await claimed(store)
        assert await store.settle([Settlement.done(first)]) == [True]
        line.deaf = True
        with pytest.raises(StoreUnavailable):
            await store.settle([Settlement.done(one)])
        line.deaf = False
        assert await store.settle([Settlement.done(one), Settlement.done(two)]) == [False, True]
        assert await store.jobs(now=NOW) == []


async def test_calls_that_are_cancelled_come_to_their_end_and_leave_no_connection_in_doubt(server: str) -> None:
    async with opened(server, pool_size=2) as store, connected(server) as admin:
        pushes = [asyncio.create_task(store.push([job(n)], now=NOW)) for n in range(100)]
        for turn, push in enumerate(pushes):
            push.cancel()
            if turn % 3:
                await asyncio.sleep(0)
        await asyncio.gather(*pushes, return_exceptions=True)
        assert (await store.push([job()], now=NOW))[0].new
        taken = 0
        while took := await claimed(store, 7):
            assert await store.settle(list(map(Settlement.done, took))) == [True] * len(took)
            taken += len(took)
        assert 1 <= taken <= 101
        assert await misplaced(admin) == []
        assert len([each for each in await admin.client_list() if each["name"] == "fastqueue"]) <= 2


async def test_closing_waits_for_what_was_asked_before(redis_url: str) -> None:
    store = RedisStore(redis_url, pool_size=1)
    await store.open()
    pushes = [asyncio.create_task(store.push([job(n)], now=NOW)) for n in range(5)]
    await asyncio.sleep(0)
    await store.close()
    assert [[pushed.id for pushed in await push] for push in pushes] == [[1], [2], [3], [4], [5]]


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_store_opened_on_another_loop_forgets_the_first(redis_url: str) -> None:
    store = RedisStore(redis_url)

    async def first() -> None:
        await store.open()
        await store.push([job(1)], now=NOW)

    async def second() -> None:
        with pytest.raises(StoreUnavailable, match="is not open"):
            await store.push([job(2)], now=NOW)
        await store.open()
        assert len(await claimed(store)) == 1
        await store.close()

    asyncio.run(first())
    asyncio.run(second())
    gc.collect()


async def test_a_refusal_of_the_server_s_costs_no_connection(server: str) -> None:
    async with opened(server, pool_size=1) as store, connected(server) as admin:
        before = [each["id"] for each in await admin.client_list() if each["name"] == "fastqueue"]
        await admin.set("{fastqueue}:waiting", "not ours")
        with pytest.raises(StoreUnavailable, match="WRONGTYPE") as refused:
            await store.lanes()
        assert isinstance(refused.value.__cause__, ResponseError)
        await admin.delete("{fastqueue}:waiting")
        assert await store.lanes() == []
        assert [each["id"] for each in await admin.client_list() if each["name"] == "fastqueue"] == before


async def test_a_server_on_a_socket_is_reached(tmp_path: Path) -> None:
    with sandbox() as box:
        path = box.folder / "redis.sock"
        with redis.serving(binary(), box, free_port(), "--unixsocket", str(path), "--unixsocketperm", "777"):
            async with opened(f"unix://{path}?db=1") as store:
                await store.push([job()], now=NOW)
                assert len(await claimed(store)) == 1

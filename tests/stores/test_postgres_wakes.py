"""Processes that push wake those that listen; a line that is cut is made again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from fastqueue.stores.postgres import PostgresStore, _wakes
from tests.servers.throwaway import free_port
from tests.stores.jobs import NOW, Ear, job, listening, there, until
from tests.stores.postgres_rows import connected, opened

LISTENER = """
    SELECT pid, state FROM pg_stat_activity
    WHERE application_name = 'fastqueue listen' AND datname = current_database()
"""


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    async with opened(postgres_url) as store:
        yield store


@pytest.fixture
async def admin(postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    async with connected(postgres_url) as connection:
        yield connection


async def test_a_job_for_later_and_what_adds_none_wake_nobody(store: PostgresStore, postgres_url: str) -> None:
    async with opened(postgres_url) as other, listening(store) as ear:
        await other.push([job(1, at=NOW + 1), job(2, at=NOW + 1)], now=NOW)
        await there(other.schedules).push_run("nightly", job(3, at=NOW + 1), now=NOW)
        await there(other.failed).run_again([12345], at=NOW)
        assert ear.quiet
        await other.push([job(4)], now=NOW)
        await ear.next()
        assert ear.times == 2


async def test_stores_on_other_tables_hear_nothing(store: PostgresStore, postgres_url: str) -> None:
    async with opened(postgres_url, prefix="other_") as other, listening(store) as ear:
        await other.push([job()], now=NOW)
        await there(other.wakes).tell()
        await there(store.wakes).tell()
        await ear.next()
        assert ear.times == 2


async def test_notices_asked_for_while_one_is_on_its_way_go_out_as_one_more(
    store: PostgresStore, postgres_url: str
) -> None:
    async with opened(postgres_url) as other, listening(store) as ear:
        async with other._access.here.notices.borrow():
            first = asyncio.create_task(there(other.wakes).tell())
            await asyncio.sleep(0.02)
            await asyncio.gather(*(there(other.wakes).tell() for _ in range(100)))
        await first
        await store.push([job()], now=NOW)
        while ear.times < 4:
            await ear.next()
        assert ear.times == 1 + 2 + 1


async def test_a_line_that_is_cut_is_made_again_and_wakes_for_what_was_missed(
    store: PostgresStore, admin: asyncpg.Connection, postgres_url: str
) -> None:
    async with opened(postgres_url) as other, listening(store) as ear:
        ups = [there(store.wakes).up]
        for _ in range(2):
            await admin.execute(f"SELECT pg_terminate_backend(pid) FROM ({LISTENER}) ours")
            await until(lambda: not there(store.wakes).up)
            ups.append(there(store.wakes).up)
            await ear.next()
            await other.push([job()], now=NOW)
            await ear.next()
            assert there(store.wakes).up
        assert ups == [True, False, False]


async def test_the_listening_connection_is_idle_and_gone_when_it_is_no_longer_wanted(
    store: PostgresStore, admin: asyncpg.Connection
) -> None:
    async with listening(store):
        assert [row["state"] for row in await admin.fetch(LISTENER)] == ["idle"]
    assert not there(store.wakes).up

    async def gone() -> bool:
        return not await admin.fetch(LISTENER)

    await until(gone)


async def test_a_line_that_cannot_be_had_is_tried_for_in_growing_waits(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 40:
            raise asyncio.CancelledError

    async with opened(postgres_url, listen_dsn=f"postgresql://127.0.0.1:{free_port()}/db") as store:
        monkeypatch.setattr(asyncio, "sleep", wait)
        with pytest.raises(asyncio.CancelledError):
            await there(store.wakes).listen(Ear())
        monkeypatch.undo()
    assert sum(waits) > 15
    assert max(waits) <= 1


class TestDeaf:
    """Where no notice can arrive, a warning says so once, and everything else goes on."""

    @pytest.mark.parametrize("pooled", [False, True])
    async def test_the_warning_tells_the_remedy_once(
        self, postgres_url: str, pooled: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_wakes, "HEARS_WITHIN", 0.05)
        # Notices do not cross databases, as they do not cross a pooler.
        options: dict[str, Any] = {"pooled": True} if pooled else {"listen_dsn": postgres_url.rpartition("/")[0]}
        async with opened(postgres_url, **options) as store:
            for _ in range(2):
                task = asyncio.create_task(there(store.wakes).listen(Ear()))
                await until(lambda: bool(caplog.records))
                task.cancel()
                await asyncio.wait({task})
            await there(store.wakes).tell()
            assert not there(store.wakes).up
        [record] = caplog.records
        assert (record.name, record.levelno) == ("fastqueue", logging.WARNING)
        assert "give the store listen_dsn" in record.getMessage()

    async def test_a_notice_that_comes_late_shows_that_it_is_not_deaf(
        self, store: PostgresStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_wakes, "HEARS_WITHIN", 0.0)
        async with opened(postgres_url) as other, listening(store) as ear:
            await other.push([job()], now=NOW)
            await ear.next()
            assert there(store.wakes).up

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator

import pytest
from redis.asyncio import Redis

from fastqueue.errors import StoreUnavailable
from fastqueue.job import NewJob
from fastqueue.outcome import Settlement
from fastqueue.stores.redis import RedisStore
from tests.stores.jobs import NOW, claimed, job, there
from tests.stores.redis_jobs import connected, misplaced, opened


@pytest.fixture
async def store(redis_url: str) -> AsyncGenerator[RedisStore]:
    async with opened(redis_url) as store:
        yield store


@pytest.fixture
async def admin(redis_url: str) -> AsyncGenerator[Redis]:
    async with connected(redis_url) as client:
        yield client


def test_what_it_cannot_promise_is_no_faculty_of_it() -> None:
    store = RedisStore("redis://localhost")
    assert store.joins is None
    assert store.migrates is None


async def test_a_store_that_is_not_open_says_so(redis_url: str) -> None:
    store = RedisStore(redis_url)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match=r"the Redis store on redis://.* is not open; await its open\(\)"):
            await store.push([job()], now=NOW)
        await store.open()
        await store.close()
        await store.close()


async def test_a_store_can_be_opened_twice_and_closed_twice_and_opened_again(redis_url: str) -> None:
    store = RedisStore(redis_url)
    await asyncio.gather(store.open(), store.open())
    await store.open()
    await store.push([job()], now=NOW)
    await asyncio.gather(store.close(), store.close())
    await store.close()
    await store.open()
    assert [kept.id for kept in await store.jobs(now=NOW)] == [1]
    await store.close()


async def test_a_claim_says_when_the_next_of_its_jobs_is_due(store: RedisStore) -> None:
    await store.push([job(1), job(2, at=NOW + 10), job(3, at=NOW + 20, at_once=2)], now=NOW)
    await store.push([job(4, at=NOW + 5, kind="unknown"), job(5, at=NOW + 5, queue="other")], now=NOW)
    claim = await store.claim(NOW, token=1, limit=10, queues=["default"], kinds={"mail"})
    assert (len(claim.jobs), claim.next_due) == (1, NOW + 10)


async def test_a_kind_that_is_held_back_is_next_due_when_that_is_over(store: RedisStore) -> None:
    await store.push([job(1)], now=NOW)
    [held] = await claimed(store)
    assert await there(store.holds).hold_back(held, until=NOW + 70)
    assert (await store.claim(NOW, token=2, limit=1, queues=None, kinds={"mail"})).next_due == NOW + 70
    assert len(await claimed(store, now=NOW + 70)) == 1


async def test_the_first_of_a_batch_with_a_key_is_kept_and_each_job_has_its_own_id(store: RedisStore) -> None:
    jobs = [job(n) if n % 60 else job(n)._replace(unique_key=str(n % 120)) for n in range(237)]
    pushed = await store.push(jobs, now=NOW)
    assert [n for n, answer in enumerate(pushed) if not answer.new] == [120, 180]
    kept = {stored.id: stored.payload for stored in await store.jobs(now=NOW, limit=1_000)}
    assert kept == {answer.id: new.payload for new, answer in zip(jobs, pushed, strict=True) if answer.new}
    assert (pushed[120].id, pushed[180].id) == (pushed[0].id, pushed[60].id)


HOSTILE = ["'", 'a"b', "a:b", "%3A", "%:25", "a.b", "[*]?", "{x}", "\0", "é\u2028𝄞", "x" * 200, "a\r\nb", "-inf", " "]


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_name_is_data(store: RedisStore, admin: Redis, name: str) -> None:
    new = NewJob(
        kind=name, payload=name, run_at=NOW, queue=name, unique_key=name, alone_key=name, options=name, carried=name
    )
    [pushed] = await store.push([new], now=NOW)
    [again] = await store.push([new], now=NOW)
    assert (again.id, again.new) == (pushed.id, False)
    [lane] = await store.lanes()
    assert (lane.queue, lane.kind) == (name, name)
    [took] = (await store.claim(NOW, token=1, limit=9, queues=[name, name], kinds=[name])).jobs
    assert (took.kind, took.queue, took.payload, took.options) == (name,) * 4
    assert (took.unique_key, took.alone_key, took.carried) == (name,) * 3
    assert await misplaced(admin) == []
    assert await store.settle([Settlement.fail(took, at=NOW, error=name)]) == [True]
    [failed] = await store.jobs(state="failed", kind=name, queue=name, now=NOW)
    assert (failed.kind, failed.queue, failed.error) == (name,) * 3
    assert await there(store.throttles).hit(name, now=NOW, window_ms=5) == (1, NOW + 5)


async def test_an_empty_key_is_a_key(store: RedisStore) -> None:
    pushed = await store.push([job(n, unique_key="", alone_key="") for n in range(2)], now=NOW)
    assert [each.new for each in pushed] == [True, False]
    [first] = await claimed(store)
    assert (first.unique_key, first.alone_key) == ("", "")
    await store.push([job(2, unique_key="", alone_key="")], now=NOW)
    assert await claimed(store) == []
    assert await store.give_back([first]) == [True]
    assert [each.id for each in await claimed(store)] == [first.id]


async def test_two_prefixes_in_one_database_are_two_queues(redis_url: str, admin: Redis) -> None:
    async with opened(redis_url, prefix="one") as one, opened(f"{redis_url}?prefix=one:two") as two:
        await one.push([job(alone_key="a", unique_key="a")], now=NOW)
        assert (len(await one.jobs(now=NOW)), await two.jobs(now=NOW)) == (1, [])
        await two.push([job(n, alone_key="a", unique_key="a") for n in range(2)], now=NOW)
        [mine] = await claimed(one)
        [theirs] = await claimed(two)
        assert await two.settle([Settlement.done(mine)]) == [False]
        assert [await store.settle([Settlement.done(each)]) for store, each in ((one, mine), (two, theirs))]
    names = {name.partition("}")[0] async for name in admin.scan_iter("*")}
    assert names == {"{one", "{one:two"}


async def test_large_values_come_back(store: RedisStore) -> None:
    text = "é" * 2_000_000
    await store.push([job()._replace(payload=text, carried=text)], now=NOW)
    [took] = await claimed(store)
    assert (took.payload, took.carried) == (text, text)


async def test_no_key_of_the_store_ever_expires(store: RedisStore, admin: Redis) -> None:
    await store.push([job(n, unique_key=str(n), alone_key=str(n), at_once=9) for n in range(5)], now=NOW)
    first, second, third, *_ = await claimed(store, 4)
    await store.settle(
        [Settlement.fail(first, at=NOW, error="x"), Settlement.retry(second, at=NOW + 99_000_000, error="x")]
    )
    assert await there(store.holds).hold_back(third, until=NOW + 5)
    await there(store.schedules).push_run("nightly", job(6), now=NOW)
    await there(store.throttles).hit("door", now=NOW, window_ms=50)
    names = [name async for name in admin.scan_iter("*")]
    assert {name.split(":")[1] for name in names} == {
        *("layout", "seq", "ids", "job", "waiting", "held", "failed", "waits", "alone", "kinds", "runs"),
        *("windows", "tries"),
    }
    assert {await admin.ttl(name) for name in names} == {-1}


async def test_nothing_is_left_of_jobs_that_are_done_forgotten_or_pruned(store: RedisStore, admin: Redis) -> None:
    for round in range(3):
        now = NOW + round * 1_000_000
        for n in range(50):
            new = job(
                n, at=now, kind=f"kind{n % 5}", queue=f"q{n % 3}", unique_key=f"{round}.{n}", alone_key=str(n % 7)
            )
            await store.push([new._replace(at_once=n % 4)], now=now)
        while took := await claimed(store, 7, now=now, kinds=tuple(f"kind{n}" for n in range(5))):
            await store.settle(
                [Settlement.done(each) if each.id % 5 else Settlement.fail(each, at=now, error="x") for each in took]
            )
            await there(store.throttles).hit(f"{round}.{took[0].id}", now=now, window_ms=5)
        failed = await there(store.failed).page(limit=99)
        assert await there(store.failed).forget([each.id for each in failed[:5]]) == [True] * 5
        assert await store.prune(now + 10, failed_before=now + 10) == 5
        assert {name async for name in admin.scan_iter("*")} == {"{fastqueue}:layout", "{fastqueue}:seq"}


async def test_jobs_are_where_they_belong_after_anything(store: RedisStore, admin: Redis) -> None:
    chance = random.Random(7)
    lost: list[Settlement] = []
    for step in range(400):
        now = NOW + step * 1_000
        kinds = ("a", "b:c", "d%e")
        kind = chance.choice(kinds)
        new = job(
            step,
            at=now + chance.randrange(-5_000, 5_000),
            kind=kind,
            unique_key=chance.choice(["u", "v", None]),
            latest=chance.random() < 0.5,
            alone_key=chance.choice(["x", "y", None]),
            at_once=chance.choice([0, 0, 2]),
            hold_ms=3_000,
        )
        await store.push([new], now=now)
        for each in await claimed(store, chance.choice([1, 3]), now=now, kinds=kinds):
            match chance.randrange(6):
                case 0:
                    await store.settle([Settlement.retry(each, at=now + 500, error=None)])
                case 1:
                    await store.settle([Settlement.fail(each, at=now, error="x")])
                case 2:
                    await store.give_back([each])
                case 3:
                    await there(store.holds).hold_back(each, until=now + 700)
                case 4:
                    lost.append(Settlement.done(each))
                case _:
                    await store.settle([Settlement.done(each)])
        if lost and chance.random() < 0.2:
            await store.settle([lost.pop(0)])
        if step % 10 == 0:
            failed = await there(store.failed).page(limit=2)
            await there(store.failed).run_again([each.id for each in failed[:1]], at=now)
            await there(store.failed).forget([each.id for each in failed[1:]])
            assert await misplaced(admin) == []


async def test_pruning_and_looking_go_in_portions(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastqueue.stores.redis.store.PORTION", 3)
    monkeypatch.setattr("fastqueue.stores.redis._faculties.PORTION", 3)
    await store.push([job(n, kind=f"kind{n % 2}") for n in range(16)], now=NOW)
    took = await claimed(store, 12, kinds=("kind0", "kind1"))
    told = [Settlement.fail(each, at=NOW + each.id, error=f"e{each.id % 4}") for each in took[:8]]
    assert await store.settle(told) == [True] * 8
    for n in range(7):
        await there(store.throttles).hit(str(n), now=NOW, window_ms=1)
    for state, ids in (("failed", range(1, 9)), ("running", range(9, 13)), ("waiting", range(13, 17))):
        assert [each.id for each in await store.jobs(state=state, now=NOW)] == list(ids)
        assert [each.id for each in await store.jobs(state=state, now=NOW, limit=3)] == list(ids)[:3]
    assert [each.id for each in await store.jobs(now=NOW, kind="kind1", after=5)] == [6, 8, 10, 12, 14, 16]
    assert [each.id for each in await there(store.failed).page()] == list(range(8, 0, -1))
    assert await store.prune(NOW + 1, failed_before=NOW + 8) == 7
    assert [each.id for each in await there(store.failed).page()] == [8]
    assert [n for n in range(7) if await there(store.throttles).tries(str(n), now=NOW)] == []


async def test_the_server_s_clock_is_told_in_milliseconds(store: RedisStore, admin: Redis) -> None:
    before, now, after = await admin.time(), await there(store.time).now(), await admin.time()
    assert before[0] * 1000 + before[1] // 1000 <= now <= after[0] * 1000 + after[1] // 1000


async def test_opening_warns_where_a_crash_would_lose_jobs(
    redis_url: str, admin: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    durable = (await admin.info("persistence"))["aof_enabled"]
    async with opened(redis_url):
        pass
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warned) == (0 if durable else 1)
    assert all("set appendonly yes" in record.getMessage() for record in warned)


async def test_jobs_that_leave_are_on_a_shelf_of_their_own_and_are_shown_there(store: RedisStore, admin: Redis) -> None:
    await store.push([job(n, alone_key="a", unique_key=str(n)) for n in range(3)], now=NOW)
    [first] = await claimed(store)
    portion = await there(store.moves).leave("elsewhere", now=NOW, limit=9)
    assert portion is not None
    assert await misplaced(admin) == []
    assert [each.id for each in await store.jobs(state="running", now=NOW)] == [1, 2, 3]
    [count] = await store.counts(NOW)
    assert (count.waiting, count.running) == (0, 3)
    await there(store.moves).left(portion.number)
    assert await misplaced(admin) == []
    # The key of the job that ran meanwhile is still held.
    await store.push([job(4, alone_key="a")], now=NOW)
    assert await claimed(store) == []
    assert await store.settle([Settlement.done(first)]) == [True]
    assert [each.id for each in await claimed(store)] == [4]

"""What is particular to the claim on PostgreSQL: lanes found by the way, hints, and the low water."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from fastqueue.outcome import Settlement
from fastqueue.store import Claim
from fastqueue.stores.postgres import PostgresStore
from fastqueue.stores.postgres._claim import LOOKS_AGAIN_AFTER
from tests.stores.jobs import NOW, TOKENS, claimed, job
from tests.stores.postgres_rows import connected, nodes, opened, plans, seed


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    async with opened(postgres_url) as store:
        yield store


async def claim(store: PostgresStore, limit: int = 10, *, now: int = NOW, **asks: Any) -> Claim:
    asked: dict[str, Any] = {"queues": None, "kinds": ["mail"], **asks}
    return await store.claim(now, token=next(TOKENS), limit=limit, **asked)


async def test_jobs_of_one_kind_are_found_whatever_limits_each(store: PostgresStore) -> None:
    await store.push([job(n, at_once=n, alone_key="a" if n % 2 else None, queue=f"q{n}") for n in range(5)], now=NOW)
    found = (await claim(store)).jobs
    assert [each.queue for each in found] == ["q0", "q2", "q3", "q4"]
    assert await store.settle([Settlement.done(each) for each in found]) == [True] * 4
    assert [each.queue for each in (await claim(store)).jobs] == ["q1"]


async def test_a_short_claim_tells_when_the_next_job_comes_due(store: PostgresStore) -> None:
    assert (await claim(store)).next_due is None
    await store.push([job(1), job(2, at=NOW + 500), job(3, at=NOW + 300, queue="slow")], now=NOW)
    await store.push([job(4, at=NOW + 100, kind="other")], now=NOW)
    assert (await claim(store)).next_due == NOW + 300
    assert (await claim(store, queues=["default"])).next_due == NOW + 500
    assert (await claim(store, now=NOW + 400)).next_due == NOW + 500


async def test_a_queue_that_is_named_twice_is_looked_at_once(store: PostgresStore) -> None:
    await store.push([job(1, queue="b"), job(2, queue="a")], now=NOW)
    assert [each.queue for each in (await claim(store, queues=["a", "b", "a"])).jobs] == ["a", "b"]


async def test_claims_at_once_of_many_lanes_take_all_there_is(store: PostgresStore, postgres_url: str) -> None:
    kinds = [f"mail{n}" for n in range(7)]
    await store.push([job(n, kind=kinds[n % 7], at=NOW - n // 7) for n in range(700)], now=NOW)
    first = (await claim(store, 300, kinds=kinds)).jobs
    assert [each.run_at for each in first] == sorted(each.run_at for each in first)
    rest = (await claim(store, 500, kinds=kinds)).jobs
    assert len({each.id for each in first + rest}) == 700
    assert max(each.run_at for each in first) <= min(each.run_at for each in rest)


class TestWithAnOldSnapshot:
    """Another session's snapshot is open, so that rows which are gone stay in the way."""

    @pytest.fixture
    async def snapshot(self, store: PostgresStore, postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
        async with connected(postgres_url) as connection, connection.transaction(isolation="repeatable_read"):
            await connection.fetch("SELECT count(*) FROM fastqueue_jobs")
            yield connection

    @pytest.fixture
    async def seeded(self, store: PostgresStore, snapshot: asyncpg.Connection, postgres_url: str) -> None:
        async with connected(postgres_url) as connection:
            await seed(connection, 6_000, "mail")

    async def drain(self, store: PostgresStore, jobs: int) -> None:
        for _ in range(jobs // 50):
            found = await claimed(store, 50)
            assert len(found) == 50
            assert await store.settle([Settlement.done(each) for each in found]) == [True] * 50

    async def walked(self, store: PostgresStore) -> int:
        """How many rows a claim looked at to find where its lanes begin."""
        async with plans(store._access.here.claims) as found:
            assert len(await claimed(store, 50)) == 50
        return sum(node.get("Heap Fetches", 0) for plan in found for node in nodes(plan))

    async def test_a_claim_walks_no_further_after_thousands_than_at_first(
        self, store: PostgresStore, seeded: None, postgres_url: str
    ) -> None:
        await self.drain(store, 4_000)
        assert await self.walked(store) < 1_000
        async with opened(postgres_url) as newcomer:
            assert await self.walked(newcomer) > 3_000

    async def test_what_comes_in_below_is_found_once_a_claim_is_not_full(
        self, store: PostgresStore, seeded: None
    ) -> None:
        await self.drain(store, 3_000)
        assert store._claimer._low is not None
        await store.push([job(at=NOW - 2_000_000)], now=NOW)
        found = await claim(store, 4_000)
        assert (len(found.jobs), found.next_due) == (3_000, NOW)
        assert [each.run_at for each in await claimed(store)] == [NOW - 2_000_000]

    async def test_a_claim_is_empty_only_when_nothing_is_due(self, store: PostgresStore, seeded: None) -> None:
        await self.drain(store, 6_000)
        assert store._claimer._low is not None
        await store.push([job(at=NOW - 2_000_000)], now=NOW)
        assert [each.run_at for each in await claimed(store)] == [NOW - 2_000_000]
        assert await claim(store) == Claim([], None)

    async def test_what_comes_in_below_is_found_after_a_second_though_claims_are_full(
        self, store: PostgresStore, seeded: None
    ) -> None:
        await self.drain(store, 3_000)
        low = store._claimer._low
        assert low is not None
        assert low.until >= low.since + LOOKS_AGAIN_AFTER
        await store.push([job(at=NOW - 2_000_000)], now=NOW)
        assert (await claimed(store, 50, now=low.until - 1))[0].run_at > NOW - 2_000_000
        assert (await claimed(store, 50, now=low.until))[0].run_at == NOW - 2_000_000

    async def test_a_lost_job_is_back_when_a_claim_looks_from_zero(self, store: PostgresStore, seeded: None) -> None:
        lost = await claimed(store, 50)
        await self.drain(store, 3_000)
        found = await claimed(store, 50, now=NOW + 60_000)
        assert [each.id for each in found] == [each.id for each in lost]
        assert all(each.lost for each in found)

    async def test_a_claim_of_other_kinds_or_queues_looks_from_zero(self, store: PostgresStore, seeded: None) -> None:
        await self.drain(store, 3_000)
        await store.push([job(at=NOW - 2_000_000, kind="other"), job(at=NOW - 2_000_000, queue="first")], now=NOW)
        assert (await claim(store, 1, queues=["first"])).jobs[0].run_at == NOW - 2_000_000
        await self.drain(store, 500)
        assert (await claimed(store, 50, kinds=("mail", "other")))[0].run_at == NOW - 2_000_000

    async def test_limited_jobs_keep_their_place_among_the_others(
        self, store: PostgresStore, seeded: None, postgres_url: str
    ) -> None:
        async with connected(postgres_url) as connection:
            await seed(connection, 3_000, "mail", mode=2)
        order: list[int] = []
        for _ in range(130):
            found = await claimed(store, 20)
            order += [each.run_at for each in found]
            assert sum(each.at_once for each in found) <= 1
            await store.settle([Settlement.done(each) for each in found])
        assert store._claimer._low is not None
        assert len(order) == 130 * 20

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from fastqueue.errors import OptionError, StoreUnavailable
from fastqueue.outcome import Settlement
from fastqueue.stores._sql import Call, Statement
from fastqueue.stores.mysql import MySQLStore
from fastqueue.stores.mysql._address import Address, refuse_old
from tests.stores.jobs import NOW, TOKENS, claimed, job, there
from tests.stores.mysql_rows import ask, connected, opened, seed


@pytest.fixture
async def store(mysql_url: str) -> AsyncGenerator[MySQLStore]:
    async with opened(mysql_url) as store:
        yield store


@pytest.mark.parametrize("scheme", ["mysql", "mariadb", "mysql+asyncmy", "mysql+aiomysql", "mariadb+pymysql"])
def test_a_url_with_any_driver_is_an_address(scheme: str) -> None:
    address = Address.read(f"{scheme}://app:s%40cret@db:3307/ap%20p?charset=latin1")
    assert address.arguments == {
        "host": "db",
        "port": 3307,
        "user": "app",
        "password": "s@cret",
        "database": "ap p",
    }
    assert address.shown == "mysql://app@db:3307/ap%20p"


@pytest.mark.parametrize(
    ("query", "arguments"),
    [
        ("unix_socket=/run/mysqld.sock", {"unix_socket": "/run/mysqld.sock"}),
        ("ssl=true", {"ssl": True}),
        ("ssl-mode=REQUIRED", {"ssl": True}),
        ("ssl_mode=disabled", {}),
        ("ssl_ca=/ca.pem", {"ssl": {"ca": "/ca.pem"}}),
        ("ssl_ca=a&ssl_cert=b&ssl_key=c&ssl=1", {"ssl": {"ca": "a", "cert": "b", "key": "c"}}),
    ],
)
def test_what_follows_a_question_mark_says_how_to_connect(query: str, arguments: dict[str, Any]) -> None:
    plain = Address.read("mysql://db/app").arguments
    assert Address.read(f"mysql://db/app?{query}").arguments == {**plain, **arguments}


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://u:s3cret@db/app", "begins with 'postgresql'; it takes a URL such as mysql://"),
        ("s3cret", "begins with 'no scheme'"),
        ("mysql://u:s3cret@db", "mysql://u@db' names no database; write it after the host: mysql://u@db/app"),
        ("mysql://u:s3cret/@db/app", "dsn cannot be read: look at its host and port"),
        ("mysql://db:99999/app", "dsn cannot be read: look at its host and port"),
        ("mysql://[::1/app", "dsn cannot be read: look at its host and port"),
        ("mysql://u:s3cret@db/app?ssl=perhaps", "ssl='perhaps'; it takes 'required' or 'disabled'"),
        ("mysql://u:s3cret@db/app?ssl_cipher=x", "'ssl_cipher'; about encryption it takes"),
    ],
)
def test_an_address_that_is_none_is_refused_with_the_remedy_and_without_the_password(url: str, message: str) -> None:
    with pytest.raises(OptionError) as refused:
        MySQLStore(url)
    assert message in str(refused.value)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("version", ["8.0.19", "8.4.3-commercial", "9.1.0", "5.5.5-10.6.21-MariaDB", "11.8.2-MariaDB"])
def test_a_server_that_is_new_enough_is_taken(version: str) -> None:
    refuse_old(version)


@pytest.mark.parametrize(
    ("version", "named"),
    [("5.7.44-log", "MySQL 5.7.44"), ("8.0.18", "MySQL 8.0.18"), ("5.5.5-10.5.29-MariaDB", "MariaDB 10.5.29")],
)
def test_a_server_that_is_too_old_is_refused(version: str, named: str) -> None:
    with pytest.raises(OptionError, match=rf"leads to {named}.*needs MySQL 8\.0\.19 or MariaDB 10\.6\.0, or newer"):
        refuse_old(version)


def test_a_store_shows_its_address_without_the_password() -> None:
    assert repr(MySQLStore("mysql://app:s3cret@db/app")) == "MySQLStore('mysql://app@db/app')"


def test_a_pool_without_a_connection_is_refused() -> None:
    with pytest.raises(OptionError, match="pool_size is 0"):
        MySQLStore("mysql://db/app", pool_size=0)


def test_a_prefix_that_cannot_name_tables_is_refused() -> None:
    with pytest.raises(OptionError, match="cannot name tables"):
        MySQLStore("mysql://db/app", prefix="a`; DROP TABLE x")


async def test_nothing_asked_is_nothing_done(store: MySQLStore) -> None:
    assert await store.push([], now=NOW) == []
    assert await store.settle([]) == []
    assert await store.give_back([]) == []
    assert await store.renew([], now=NOW, until=NOW) == []
    assert await there(store.failed).forget([]) == []
    nothing: list[dict[str, Any]] = [{"limit": 0}, {"kinds": []}, {"queues": []}]
    for none in nothing:
        ask: dict[str, Any] = {"limit": 1, "kinds": {"mail"}, "queues": None, **none}
        assert (await store.claim(NOW, token=1, **ask)).jobs == []


HOSTILE = ["'", '"', "a'b\"c`d", "a.b", "a;DROP TABLE x", "%s :id ?", "é\u2028", "x" * 64, "x" * 70, "{jobs}", "a\\"]
ALIKE = ["count", "Count", "count ", "co\u0301unt", "c\u00f3unt", "\U0001f4e8", "[:ids|, ]", "\0"]


async def test_hostile_names_are_data(store: MySQLStore) -> None:
    for name in HOSTILE + ALIKE:
        new = job(kind=name, queue=name, unique_key=name, alone_key=name, options=name, carried=name)
        (pushed,) = await store.push([new], now=NOW)
        (again,) = await store.push([new], now=NOW)
        assert (again.id, again.new) == (pushed.id, False)
        (found,) = (await store.claim(NOW, token=1, limit=9, queues=[name, name], kinds=[name])).jobs
        assert (found.kind, found.queue, found.options, found.carried) == (name,) * 4
        assert (found.unique_key, found.alone_key) == (name, name)
        assert await store.settle([Settlement.retry(found, at=NOW, error=name)]) == [True]
        (found,) = (await store.claim(NOW, token=2, limit=9, queues=[name], kinds=[name])).jobs
        assert found.error == name
        assert await there(store.throttles).hit(name, now=NOW, window_ms=5) == (1, NOW + 5)


async def test_names_that_a_database_may_take_for_the_same_are_different(store: MySQLStore) -> None:
    pushed = await store.push([job(kind=name, queue=name, unique_key=name) for name in ALIKE], now=NOW)
    assert all(each.new for each in pushed)
    for name in ALIKE:
        (found,) = await claimed(store, 9, kinds=(name,))
        assert (found.kind, found.queue) == (name, name)
    for name in ALIKE:
        assert (await there(store.throttles).hit(name, now=NOW, window_ms=5)).tries == 1


@pytest.mark.parametrize("what", ["kind", "queue", "unique_key", "alone_key", "schedule"])
async def test_a_name_that_is_too_long_for_its_column_is_refused_and_none_of_the_push_is_kept(
    store: MySQLStore, what: str
) -> None:
    fits: dict[str, Any] = {what: "é" * 255}
    long: dict[str, Any] = {what: "é" * 256}
    await store.push([job(**fits)], now=NOW)
    with pytest.raises(OptionError, match=rf"the {what} 'é+'\.\.\. has 256 characters; MySQL keeps 255"):
        await store.push([job(), job(**long)], now=NOW)
    assert len(await store.jobs(now=NOW)) == 1


async def test_the_name_of_a_throttle_or_schedule_that_is_too_long_is_refused(store: MySQLStore) -> None:
    with pytest.raises(OptionError, match=r"the key 'a+'\.\.\. has 256 characters"):
        await there(store.throttles).hit("a" * 256, now=NOW, window_ms=5)
    with pytest.raises(OptionError, match=r"the schedule 'a+'\.\.\. has 256 characters"):
        await there(store.schedules).push_run("a" * 256, job(), now=NOW)


async def test_a_push_of_many_large_jobs_goes_in_several_statements_and_is_one(store: MySQLStore) -> None:
    large = [job(n, options="x'\\" * 100_000, unique_key=str(n % 30)) for n in range(40)]
    pushed = await store.push(large, now=NOW)
    assert [each.new for each in pushed] == [True] * 30 + [False] * 10
    kept = await store.jobs(now=NOW)
    assert {each.payload: each.id for each in kept} == {
        new.payload: each.id for new, each in zip(large[:30], pushed, strict=False)
    }
    assert {len(each.options or "") for each in kept} == {300_000}


@pytest.mark.parametrize("key", [None, "k"])
async def test_ids_are_right_where_the_server_counts_in_steps(mysql_url: str, key: str | None) -> None:
    """As in a cluster, where each server counts in its own class of numbers."""
    async with opened(mysql_url, pool_size=1) as store:
        async with store._access.here.others.statements() as execute:
            await execute(Call(Statement("test", "SET auto_increment_increment = 7, auto_increment_offset = 3"), {}))
        new = [job(n, unique_key=key and f"{key}{n}") for n in range(2_500)]
        pushed = await store.push(new, now=NOW)
        assert pushed[1].id - pushed[0].id == 7
        kept = await store.jobs(now=NOW, limit=9_999)
        assert [(each.id, each.payload) for each in kept] == [
            (each.id, given.payload) for each, given in zip(pushed, new, strict=True)
        ]


async def test_a_claim_that_takes_nothing_says_when_the_next_of_its_jobs_is_due(store: MySQLStore) -> None:
    await store.push([job(1), job(2, at=NOW + 10), job(3, at=NOW + 20)], now=NOW)
    await store.push([job(4, at=NOW + 5, kind="unknown"), job(5, at=NOW + 5, queue="other")], now=NOW)

    async def claim(now: int) -> tuple[int, int | None]:
        found = await store.claim(now, token=next(TOKENS), limit=9, queues=["default"], kinds={"mail"})
        return len(found.jobs), found.next_due

    assert await claim(NOW) == (1, None)
    assert await claim(NOW) == (0, NOW + 10)
    assert await claim(NOW + 15) == (1, None)
    assert await claim(NOW + 15) == (0, NOW + 20)
    assert await claim(NOW + 20) == (1, None)
    assert await claim(NOW + 20) == (0, None)


async def test_a_kind_that_is_held_back_is_next_due_when_that_is_over(store: MySQLStore) -> None:
    await store.push([job(1)], now=NOW)
    (held,) = await claimed(store)
    assert await there(store.holds).hold_back(held, until=NOW + 70)
    claim = await store.claim(NOW, token=next(TOKENS), limit=1, queues=None, kinds={"mail"})
    assert (claim.jobs, claim.next_due) == ([], NOW + 70)
    assert len(await claimed(store, now=NOW + 70)) == 1


async def test_two_prefixes_in_one_database_are_two_queues(mysql_url: str) -> None:
    async with opened(mysql_url, prefix="one_") as one, opened(mysql_url, prefix="two_") as two:
        await one.push([job()], now=NOW)
        assert (len(await one.jobs(now=NOW)), await two.jobs(now=NOW)) == (1, [])
        assert await one.identity() != await two.identity()


async def test_what_is_pruned_goes_in_portions(
    store: MySQLStore, mysql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MySQLStore, "portion", 3)
    with connected(mysql_url) as cursor:
        seed(cursor, 8, "mail", "failed")
    for n in range(7):
        await there(store.throttles).hit(str(n), now=n, window_ms=1)
    assert await store.prune(7, failed_before=NOW) == 7
    assert [each.failed_ms for each in await store.jobs(now=NOW)] == [NOW]
    assert [n for n in range(7) if await there(store.throttles).tries(str(n), now=-1)] == []


async def test_pruning_passes_by_what_others_are_at(store: MySQLStore, mysql_url: str) -> None:
    with connected(mysql_url) as cursor, connected(mysql_url) as other:
        seed(cursor, 3, "mail", "failed")
        other.execute("BEGIN")
        other.execute("SELECT id FROM fastqueue_jobs WHERE id = 2 FOR UPDATE")
        assert await store.prune(NOW, failed_before=NOW + 1) == 2
        other.execute("ROLLBACK")
        assert await store.prune(NOW, failed_before=NOW + 1) == 1


async def test_a_moment_of_a_held_kind_is_forgotten_and_its_gate_stays(store: MySQLStore, mysql_url: str) -> None:
    await store.push([job(n, kind=kind, at_once=1) for n, kind in enumerate(("past", "now", "later"))], now=NOW)
    for kind, until in (("past", NOW - 1), ("now", NOW), ("later", NOW + 1)):
        (held,) = await claimed(store, kinds=(kind,))
        await there(store.holds).hold_back(held, until=until)
    await store.prune(NOW, failed_before=0)
    with connected(mysql_url) as cursor:
        cursor.execute("SELECT kind, held_until FROM fastqueue_held_kinds ORDER BY kind")
        assert cursor.fetchall() == (("later", NOW + 1), ("now", 0), ("past", 0))


async def test_a_frozen_claim_of_limited_jobs_does_not_stop_the_claims_of_others(
    store: MySQLStore, mysql_url: str
) -> None:
    await store.push([job(1, at_once=1, kind="limited"), job(2), job(3, kind="other")], now=NOW)
    with connected(mysql_url) as frozen:
        frozen.execute("BEGIN")
        frozen.execute("SELECT kind FROM fastqueue_held_kinds WHERE kind = 'limited' FOR UPDATE")
        found = await claimed(store, kinds=("limited", "mail", "other"))
        assert [each.kind for each in found] == ["mail", "other"]
        frozen.execute("ROLLBACK")
    assert len(await claimed(store, kinds=("limited", "mail", "other"))) == 1


async def test_a_claim_that_sees_its_kind_full_does_not_come_to_the_gate(store: MySQLStore, mysql_url: str) -> None:
    await store.push([job(n, at_once=2) for n in range(3)], now=NOW)
    assert len(await claimed(store)) == 2
    claims = store._access.here.claims
    connection = await ask(claims, "SELECT CONNECTION_ID()")
    with connected(mysql_url) as inside:
        inside.execute("BEGIN")
        inside.execute("SELECT kind FROM fastqueue_held_kinds WHERE kind = 'mail' FOR UPDATE")
        assert await claimed(store) == []
    # One on which a lock did not come in time is not used again.
    assert await ask(claims, "SELECT CONNECTION_ID()") == connection


async def test_holds_that_are_over_go_back_in_portions_and_those_in_use_are_passed_by(
    store: MySQLStore, mysql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastqueue.stores.mysql._claim.PORTION", 2)
    await store.push([job(n, hold_ms=1_000) for n in range(5)], now=NOW)
    held = await claimed(store)
    with connected(mysql_url) as other:
        other.execute("BEGIN")
        other.execute(f"SELECT id FROM fastqueue_jobs WHERE id = {held[2].id} FOR UPDATE")
        again = await claimed(store, now=NOW + 1_000)
        assert [(each.id, each.lost) for each in again] == [(each.id, True) for each in held if each != held[2]]
        other.execute("ROLLBACK")
    assert [each.id for each in await claimed(store, now=NOW + 1_000)] == [held[2].id]


async def test_the_clock_is_the_server_s_in_utc(store: MySQLStore, mysql_url: str) -> None:
    with connected(mysql_url) as cursor:
        moments: list[int] = []
        for _ in range(2):
            cursor.execute("SELECT FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000)")
            moments += map(int, cursor.fetchall()[0])
            moments.append(await there(store.time).now())
    assert moments == sorted(moments)


async def test_a_store_can_be_opened_twice_and_closed_twice_and_opened_again(mysql_url: str) -> None:
    store = MySQLStore(mysql_url)
    await asyncio.gather(store.open(), store.open())
    await store.open()
    await store.push([job()], now=NOW)
    await asyncio.gather(store.close(), store.close())
    await store.close()
    await store.open()
    assert len(await store.jobs(now=NOW)) == 1
    await store.close()


async def test_a_store_without_a_server_says_so_without_the_password() -> None:
    store = MySQLStore("mysql://app:s3cret@127.0.0.1:1/app")
    with pytest.raises(StoreUnavailable, match=r"MySQL at mysql://app@127\.0\.0\.1:1/app is not available") as raised:
        await store.open()
    assert "s3cret" not in str(raised.value)
    assert raised.value.__cause__ is not None

"""What is pushed in a transaction is there when that has committed, and only then: for each handle, and each end."""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import text

from fastqueue.job import NewJob, Pushed
from fastqueue.store import Joins, Store
from tests.handles import HANDLES, Held, store_at, sync_engine

SYNC_DRIVERS = {"sqlite": "pysqlite", "postgres": "psycopg", "mysql": "pymysql"}

numbers = itertools.count()


@dataclass
class On:
    """A handle under test, on a store, and what became of what was pushed and written through it."""

    store: Store
    url: str
    words: str
    kind: str = field(default_factory=lambda: f"kind-{next(numbers)}")
    wakes: int = 0

    def hold(self) -> AbstractAsyncContextManager[Held]:
        return HANDLES[self.store.name, self.words](self.url)

    @property
    def joins(self) -> Joins:
        assert self.store.joins is not None
        return self.store.joins

    @property
    def tells(self) -> bool:
        """Whether such a handle tells of its commit."""
        return "ession" in self.words

    async def write(self, held: Held, name: int, *, key: str | None = None) -> Pushed:
        """A row of the app's and a job in one transaction."""
        await held.execute(f"INSERT INTO accounts (kind, name) VALUES ('{self.kind}', {name})")
        enlisted = self.joins.enlist(held.handle)
        jobs = [NewJob(kind=self.kind, payload=str(name), run_at=0, unique_key=key)]
        pushed = enlisted.push_sync(jobs, now=0) if enlisted.sync else await enlisted.push(jobs, now=0)
        assert enlisted.after_commit(self._wake, pushed=1) is self.tells
        return pushed[0]

    def _wake(self) -> None:
        assert self._accounts(), "woken before the commit"
        self.wakes += 1

    async def kept(self) -> list[int]:
        """What is there for others: jobs, and the app's rows, which must be the same."""
        jobs = [int(job.payload) for job in await self.store.jobs(now=0, kind=self.kind)]
        assert jobs == self._accounts()
        return jobs

    def _accounts(self) -> list[int]:
        query = text("SELECT name FROM accounts WHERE kind = :kind ORDER BY name")
        with sync_engine(self.url, SYNC_DRIVERS[self.store.name]) as engine, engine.connect() as connection:
            return list(connection.execute(query, {"kind": self.kind}).scalars())


@pytest.fixture(params=[pytest.param(key, id=": ".join(key)) for key in HANDLES])
async def on(request: pytest.FixtureRequest) -> AsyncGenerator[On]:
    """Each handle, on an open store, in a database that has a table of the app's too."""
    name, words = request.param
    url = request.getfixturevalue(f"{name}_place")
    store = store_at(name, url)
    await store.open()
    with sync_engine(url, SYNC_DRIVERS[name]) as engine, engine.begin() as connection:
        connection.execute(text("CREATE TABLE IF NOT EXISTS accounts (kind VARCHAR(40), name INTEGER)"))
    yield On(store, url, words)
    await store.close()


async def test_a_push_is_kept_with_the_commit_and_nobody_sees_it_or_is_woken_before(on: On) -> None:
    async with on.hold() as held:
        assert (await on.write(held, 1)).new
        assert (await on.write(held, 2, key="a")).new
        assert await on.kept() == []
        assert on.wakes == 0
        await held.commit()
        assert on.wakes == (1 if on.tells else 0)
    assert await on.kept() == [1, 2]


async def test_a_push_is_gone_with_the_rollback_and_its_unique_key_is_free(on: On) -> None:
    async with on.hold() as held:
        first = await on.write(held, 1, key="a")
        again = await on.write(held, 2, key="a")
        assert (first.new, again.new, first.id == again.id) == (True, False, True)
        await held.rollback()
    assert await on.kept() == []
    async with on.hold() as held:
        assert (await on.write(held, 3, key="a")).new
        await held.commit()
    assert await on.kept() == [3]
    assert on.wakes == (1 if on.tells else 0)


async def test_a_push_is_gone_when_an_error_leaves_the_transaction(on: On) -> None:
    with suppress(ZeroDivisionError):
        async with on.hold() as held:
            await on.write(held, 1)
            raise ZeroDivisionError
    assert await on.kept() == []
    assert on.wakes == 0


async def test_a_push_in_a_savepoint_that_is_released_waits_for_the_commit(on: On) -> None:
    async with on.hold() as held:
        await on.write(held, 1)
        savepoint = await held.savepoint()
        await on.write(held, 2)
        await savepoint.commit()
        assert await on.kept() == []
        assert on.wakes == 0
        await held.commit()
    assert await on.kept() == [1, 2]
    assert on.wakes == (1 if on.tells else 0)


async def test_a_push_in_a_savepoint_that_is_rolled_back_goes_and_the_rest_stays(on: On) -> None:
    async with on.hold() as held:
        await on.write(held, 1)
        savepoint = await held.savepoint()
        await on.write(held, 2)
        await savepoint.rollback()
        await on.write(held, 3)
        await held.commit()
    assert await on.kept() == [1, 3]
    assert on.wakes == (1 if on.tells else 0)


def test_the_page_has_a_row_for_each_handle_that_is_tested_and_no_other() -> None:
    page = (Path(__file__).parents[1] / "docs/transactions.md").read_text()
    told: set[tuple[str, str, str, bool]] = set()
    for line in re.findall(r"^\| (.+) \|$", page.partition("## What `in_` takes")[2], re.MULTILINE)[2:]:
        handle, *cells = [cell.strip(" `") for cell in line.replace("SQLAlchemy's `", "").split("|")]
        for store, cell in zip(SYNC_DRIVERS, cells, strict=False):
            drivers = re.sub(r"\(.*?\)", "", cell).split(",")
            told |= {(store, handle.replace("`", ""), driver.strip(), cells[-1] == "yes") for driver in drivers if cell}
    tested: set[tuple[str, str, str, bool]] = set()
    for store, words in HANDLES:
        handle, _, driver = words.rpartition(", ")
        if "onnection" not in handle and "ession" not in handle:
            handle, driver = "a driver's own connection", words.partition(",")[0]
        tested.add((store, handle, driver, "ession" in words))
    assert told == tested

"""The conformance kit as its users run it: as a base class of tests, and as a function."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import fastqueue.testing
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import MakeStore, exercise
from fastqueue.testing.conformance.clauses import AllClauses
from tests.testing.joining import Hasty, JoiningStore, Rash, Transaction

STORES = '''
import pytest

from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import StoreContract


class Least(MemoryStore):
    """Keeps what is pushed, and nothing that a push may ask besides."""

    name = "least"
    keeps = frozenset()

    def _share(self, kept):
        super()._share(kept)
        self.schedules = self.holds = self.failed = self.throttles = None


class Forgetful(MemoryStore):
    async def settle(self, settlements):
        return [True] * len(settlements)


class TestLeast(StoreContract):
    @pytest.fixture
    async def make_store(self):
        return Least().again


class TestForgetful(StoreContract):
    @pytest.fixture
    def make_store(self):
        return Forgetful().again


class TestWithoutAFixture(StoreContract):
    pass
'''


def run(folder: Path, *options: str) -> str:
    (folder / "test_stores.py").write_text(STORES)
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\naddopts = --strict-markers\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout


@asynccontextmanager
async def memory() -> AsyncGenerator[MakeStore]:
    yield MemoryStore().again


def test_what_a_store_lacks_is_skipped_and_the_rest_is_asked(tmp_path: Path) -> None:
    told = run(tmp_path, "-k", "TestLeast")
    assert "least does not keep unique keys" in told
    assert "least has no faculty 'schedules'" in told
    assert " failed" not in told.splitlines()[-1]
    assert " passed" in told.splitlines()[-1]


def test_a_failing_check_shows_its_clause_and_its_values(tmp_path: Path) -> None:
    told = run(tmp_path, "-k", "TestForgetful and test_b3")
    assert '"""B3: GONE removes the job."""' in told
    assert "assert [Claimed(id=1" in told


def test_a_store_without_a_factory_is_told_what_to_write(tmp_path: Path) -> None:
    assert "TestWithoutAFixture needs a fixture make_store" in run(tmp_path, "-k", "TestWithoutAFixture and test_b3")


async def test_a_report_names_what_failed_and_what_was_skipped() -> None:
    class Forgetful(MemoryStore):
        failed = None

        async def settle(self, settlements: object) -> list[bool]:
            raise ConnectionError("the server went away")

    @asynccontextmanager
    async def forgetful() -> AsyncGenerator[MakeStore]:
        yield Forgetful().again

    report = await exercise(forgetful, only="test_b3")

    assert report.broken == {"B3"}
    assert "FAILED test_b3_done_removes_the_job: ConnectionError: the server went away" in str(report)


async def test_only_a_part_is_run_when_asked() -> None:
    report = await exercise(memory, only="test_x1")
    assert report.passed == []
    assert set(report.skipped.values()) == {"memory has no faculty 'joins'"}
    report = await exercise(memory, only="test_b7")
    assert report.passed == ["test_b7_no_job_is_claimed_twice[tasks]"]


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("transaction", [Transaction, Hasty])
async def test_pushes_in_a_transaction_are_checked_when_one_can_be_begun(
    transaction: type[Transaction], sync: bool
) -> None:
    stores: list[JoiningStore] = []

    @asynccontextmanager
    async def fresh() -> AsyncGenerator[MakeStore]:
        stores.append(JoiningStore())
        yield stores[-1].again

    report = await exercise(fresh, only="test_x1", begin=lambda: stores[-1].begin(transaction, sync=sync))

    assert len(report.passed) == (2 if transaction is Transaction else 0)
    assert set(report.skipped.values()) == {"memory has no faculty 'wakes'"}
    report = await exercise(fresh, only="test_x1")
    assert set(report.skipped.values()) == {"memory joins transactions, but `begin` is not given to begin one"}


@pytest.mark.parametrize(("transaction", "passed"), [(Transaction, 2), (Hasty, 0), (Rash, 1)])
async def test_transactions_of_the_store_s_own_are_checked(transaction: type[Transaction], passed: int) -> None:
    class Own(JoiningStore):
        own = transaction

    @asynccontextmanager
    async def fresh() -> AsyncGenerator[MakeStore]:
        yield Own().again

    report = await exercise(fresh, only="test_x2", begin=lambda: Own().begin(Transaction, sync=False))
    assert len(report.passed) == passed


def test_the_kit_refuses_to_run_without_its_checks() -> None:
    code = "import asyncio; from fastqueue.testing import exercise; asyncio.run(exercise(None))"
    done = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True)
    assert "run Python without -O" in done.stderr


def test_every_check_quotes_its_clause() -> None:
    checks = {name: check.__doc__ or "" for name, check in vars_of(AllClauses).items() if name.startswith("test_")}
    assert len(checks) > 100
    assert not [name for name, quoted in checks.items() if ":" not in quoted]


def test_no_check_hides_another_of_the_same_name() -> None:
    names = [name for group in AllClauses.__mro__ for name in vars(group) if name.startswith("test_")]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("group", ["B7", "S4", "U5", "L3", "O6", "A5", "H4", "F3", "C3", "T4", "G21"])
def test_every_clause_of_a_group_is_checked(group: str) -> None:
    checks = " ".join(f"{name} {check.__doc__}" for name, check in vars_of(AllClauses).items())
    letter, last = group[0], int(group[1:])
    clauses = [f"{letter}{number}" for number in range(1, last + 1)]
    assert [clause for clause in clauses if not re.search(rf"\b{clause}[abc]?\b|test_{clause.lower()}", checks)] == []


def vars_of(group: type) -> dict[str, object]:
    return {name: getattr(group, name) for name in dir(group)}


@pytest.mark.parametrize("name", fastqueue.testing.__all__)
def test_all_that_the_package_names_is_there(name: str) -> None:
    assert getattr(fastqueue.testing, name) is not None


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = fastqueue.testing.nothing

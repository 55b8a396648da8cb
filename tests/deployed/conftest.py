"""Where apps are deployed in these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deployed.server import Place


@pytest.fixture(params=["sqlite", "postgres", "mysql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    ledger = tmp_path / "ledger"
    ledger.mkdir()
    return Place(request.getfixturevalue(f"{request.param}_url"), ledger)

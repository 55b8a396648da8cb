"""What the tests of the command have."""

from __future__ import annotations

import pytest

from tests.cli.command import Command


@pytest.fixture
def fastqueue(sqlite_url: str) -> Command:
    """The command on a SQLite file."""
    return Command(sqlite_url)

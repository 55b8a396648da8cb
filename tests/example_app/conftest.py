"""An example app of its own for each test."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from example_app.settings import Settings
from tests.example_app.browser import Browser
from tests.example_app.site import Site, serving


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of an instance whose jobs run when the test says so."""
    return Settings(database_url=f"sqlite:///{tmp_path / 'app.db'}", app_url="http://test", workers=0)


@pytest.fixture
async def site(settings: Settings) -> AsyncGenerator[Site]:
    """The app, started."""
    async with serving(settings) as site:
        yield site


@pytest.fixture
async def browser(site: Site) -> AsyncGenerator[Browser]:
    """A visitor of the app."""
    async with site.visitor() as browser:
        yield browser

"""An example app of its own for each test."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from argon2 import PasswordHasher
from argon2.profiles import CHEAPEST

from example_app import passwords
from example_app.settings import Settings
from tests.example_app.browser import Browser
from tests.example_app.site import Site, serving


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of an instance whose jobs run when the test says so."""
    return Settings(database_url=f"sqlite:///{tmp_path / 'app.db'}", app_url="http://test", in_serve=False)


@pytest.fixture
def cheap_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash passwords fast: here the app is tested, and not how long Argon2 takes."""
    monkeypatch.setattr(passwords, "_hasher", PasswordHasher.from_parameters(CHEAPEST))


@pytest.fixture
async def site(cheap_passwords: None, settings: Settings) -> AsyncGenerator[Site]:
    """The app, started."""
    async with serving(settings) as site:
        yield site


@pytest.fixture
async def browser(site: Site) -> AsyncGenerator[Browser]:
    """A visitor of the app."""
    async with site.visitor() as browser:
        yield browser

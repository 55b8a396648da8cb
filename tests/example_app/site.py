"""The example app in this process, started as a server starts it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from asgi_lifespan import LifespanManager
from fastapi import FastAPI
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from example_app.database import Database
from example_app.main import create_app
from example_app.models import Link, User
from example_app.settings import Settings
from fastqueue import Queue
from tests.example_app.browser import PASSWORD, Browser

__all__ = ["Site", "serving"]


@dataclass(frozen=True, slots=True)
class Site:
    """A started app."""

    app: FastAPI

    @property
    def queue(self) -> Queue:
        """The queue of the app."""
        queue: Queue = self.app.state.queue
        return queue

    @property
    def database(self) -> Database:
        """The database of the app."""
        database: Database = self.app.state.database
        return database

    @asynccontextmanager
    async def visitor(self, *, ip: str = "192.0.2.1") -> AsyncGenerator[Browser]:
        """Open a browser with cookies of its own."""
        browser = Browser.of(self.app, ip=ip)
        async with browser.client:
            yield browser

    async def has_account(self, browser: Browser, email: str, password: str = PASSWORD) -> None:
        """Register and verify an address."""
        await browser.register(email, password)
        await self.queue.drain()
        verified = await browser.verify(await browser.newest_link())
        assert verified.status_code == 200, verified.text

    async def user(self, email: str) -> User | None:
        """Look an account up in the database."""
        async with self.database.sessions() as db:
            return await db.scalar(select(User).where(User.email == email))

    async def links(self) -> list[Link]:
        """Look at the links in the database."""
        async with self.database.sessions() as db:
            return list(await db.scalars(select(Link)))

    @asynccontextmanager
    async def changing(self) -> AsyncGenerator[AsyncSession]:
        """Change something in the database behind the app's back."""
        async with self.database.sessions.begin() as db:
            yield db


@asynccontextmanager
async def serving(settings: Settings) -> AsyncGenerator[Site]:
    """Start the app, and stop it at the end."""
    app = create_app(settings)
    async with LifespanManager(app, startup_timeout=30, shutdown_timeout=30):
        yield Site(app)

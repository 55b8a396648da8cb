"""The app on each database that it can have."""

from __future__ import annotations

import asyncio

import pytest

from example_app.settings import Settings
from tests.example_app.browser import PASSWORD, problems
from tests.example_app.site import Site, serving


@pytest.fixture(params=["sqlite_url", "postgres_url", "mysql_url"])
def settings(request: pytest.FixtureRequest) -> Settings:
    """Settings of an instance on each of the databases."""
    return Settings(database_url=request.getfixturevalue(request.param), app_url="http://test", in_serve=False)


async def test_an_account_is_registered_verified_and_changes_its_address(site: Site) -> None:
    async with site.visitor() as browser:
        await site.has_account(browser, "ann@example.com")
        assert (await browser.sign_in("ann@example.com")).url.path == "/account"
        await browser.send("/account", {"email": "new@example.org", "password": PASSWORD}, to="/account/email")
        await site.queue.drain()
        await browser.verify(await browser.newest_link(to="new@example.org"))
        assert "new@example.org" in (await browser.open("/account")).text
        assert (await browser.register("new@example.org")).url.path == "/check-mail"
        await site.queue.drain()
        assert (await browser.outbox())[0] == ("new@example.org", "You already have an account")


async def test_one_account_comes_of_a_form_that_is_sent_many_times_at_once(site: Site) -> None:
    async with site.visitor() as browser:
        await browser.open("/sign-in")
        pages = await asyncio.gather(*(browser.register("ann@example.com") for _ in range(4)))
        assert {page.url.path for page in pages} == {"/check-mail"}
        await site.queue.drain()
        assert await browser.outbox() == [("ann@example.com", "Verify your email address")]


async def test_tries_at_once_are_each_counted_once(site: Site) -> None:
    async with site.visitor() as browser:
        await browser.open("/sign-in")
        pages = await asyncio.gather(*(browser.sign_in("ann@example.com", "wrong") for _ in range(14)))
        assert sorted(page.status_code for page in pages) == [422] * 10 + [429] * 4


async def test_two_instances_that_start_at_once_share_one_database(settings: Settings) -> None:
    async with serving(settings) as one, serving(settings) as other:
        async with one.visitor() as here:
            await one.has_account(here, "ann@example.com")
        async with other.visitor() as there:
            page = await there.sign_in("ann@example.com")
            assert problems(page) == []
            assert page.url.path == "/account"

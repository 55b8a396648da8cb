"""Signing in and out, the session cookie, and the forms that belong to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import update

from example_app.models import Tries
from example_app.settings import Settings
from tests.example_app.browser import PASSWORD, Browser, form_token, problems
from tests.example_app.site import Site, serving

REFUSED = ["The address or the password is not right."]


async def test_a_wrong_password_and_an_unknown_address_are_told_alike(site: Site, browser: Browser) -> None:
    await site.has_account(browser, "ann@example.com")
    wrong = await browser.sign_in("ann@example.com", "not the password")
    unknown = await browser.sign_in("bob@example.com", "not the password")
    assert wrong.status_code == unknown.status_code == 422
    assert problems(wrong) == problems(unknown) == REFUSED


async def test_an_unverified_account_is_sent_to_its_mail_and_not_signed_in(browser: Browser) -> None:
    await browser.register("ann@example.com")
    assert (await browser.sign_in("ann@example.com")).url.path == "/check-mail"
    assert (await browser.open("/account")).url.path == "/sign-in"


async def test_an_address_is_throttled_for_everybody_until_its_window_is_over(site: Site, browser: Browser) -> None:
    await site.has_account(browser, "ann@example.com")
    for _ in range(10):
        assert problems(await browser.sign_in("ann@example.com", "not the password")) == REFUSED
    async with site.visitor(ip="198.51.100.7") as elsewhere:
        page = await elsewhere.sign_in("ann@example.com")
        assert page.status_code == 429
        assert 0 < int(page.headers["Retry-After"]) <= 15 * 60
        assert problems(page) == ["That was tried too often. Wait 15 minutes, then try again."]

        async with site.changing() as db:
            await db.execute(update(Tries).values(ends_at=datetime.now(UTC) - timedelta(seconds=1)))
        assert (await elsewhere.sign_in("ann@example.com")).url.path == "/account"


async def test_an_unknown_address_is_throttled_like_a_known_one(browser: Browser) -> None:
    for _ in range(10):
        assert (await browser.sign_in("nobody@example.com")).status_code == 422
    assert (await browser.sign_in("nobody@example.com")).status_code == 429


async def test_the_right_password_lets_its_address_begin_to_count_anew(site: Site, browser: Browser) -> None:
    await site.has_account(browser, "ann@example.com")
    for _ in range(2):
        for _ in range(9):
            await browser.sign_in("ann@example.com", "not the password")
        assert (await browser.sign_in("ann@example.com")).url.path == "/account"


async def test_a_visitor_who_signed_out_is_signed_out(site: Site, browser: Browser) -> None:
    await site.has_account(browser, "ann@example.com")
    await browser.sign_in("ann@example.com")
    await browser.send("/account", {}, to="/sign-out")
    assert (await browser.open("/account")).url.path == "/sign-in"


async def test_signing_out_everywhere_ends_the_sessions_of_other_browsers(site: Site, browser: Browser) -> None:
    await site.has_account(browser, "ann@example.com")
    await browser.sign_in("ann@example.com")
    async with site.visitor() as other:
        await other.sign_in("ann@example.com")
        await browser.send("/account", {}, to="/sign-out-everywhere")
        assert (await other.open("/account")).url.path == "/sign-in"
        assert (await other.sign_in("ann@example.com")).url.path == "/account"


async def test_the_session_cookie_is_out_of_reach_of_scripts_and_other_sites(settings: Settings) -> None:
    async with serving(settings) as site, site.visitor() as browser:
        cookie = (await browser.open("/register")).headers["set-cookie"]
        assert cookie.startswith("session=")
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert "secure" not in cookie


async def test_the_session_cookie_goes_by_https_only_where_the_app_does(settings: Settings) -> None:
    secure = Settings(database_url=settings.database_url, app_url="https://app.example.com", in_serve=False)
    async with serving(secure) as site, site.visitor() as browser:
        page = await browser.open("/register")
        assert page.headers["set-cookie"].startswith("__Host-session=")
        assert "; secure" in page.headers["set-cookie"]
        assert page.headers["strict-transport-security"] == "max-age=31536000"


async def test_a_cookie_that_was_tampered_with_is_no_session(site: Site, browser: Browser) -> None:
    await site.has_account(browser, "ann@example.com")
    await browser.sign_in("ann@example.com")
    signed = browser.client.cookies["session"]
    browser.client.cookies.set("session", signed[:-4] + ("AAAA" if signed[-4:] != "AAAA" else "BBBB"), domain="test")
    async with site.visitor() as other:
        other.client.cookies.set("session", signed[:-4] + "AAAA")
        assert (await other.open("/account")).url.path == "/sign-in"


async def test_a_session_outlives_a_restart_of_the_app(settings: Settings) -> None:
    async with serving(settings) as site, site.visitor() as browser:
        await site.has_account(browser, "ann@example.com")
        await browser.sign_in("ann@example.com")
        signed = browser.client.cookies["session"]
    async with serving(settings) as site, site.visitor() as browser:
        browser.client.cookies.set("session", signed)
        assert (await browser.open("/account")).url.path == "/account"


async def test_signing_in_begins_another_session(site: Site, browser: Browser) -> None:
    await site.has_account(browser, "ann@example.com")
    before = form_token(await browser.open("/sign-in"))
    await browser.sign_in("ann@example.com")
    assert form_token(await browser.open("/account")) != before


async def test_a_form_without_the_token_of_its_session_is_refused(site: Site, browser: Browser) -> None:
    fields = {"email": "ann@example.com", "password": PASSWORD}
    async with site.visitor() as other:
        theirs = form_token(await other.open("/register"))
    await browser.open("/register")
    for wrong in ({}, {"form_token": ""}, {"form_token": theirs}, {"form_token": "é"}):
        page = await browser.client.post("/register", data={**fields, **wrong})
        assert page.status_code == 403
        assert "open for too long" in page.text
    assert await site.user("ann@example.com") is None


async def test_every_route_that_changes_something_asks_for_the_token(site: Site, browser: Browser) -> None:
    paths = site.app.openapi()["paths"].items()
    routes = [(method, path) for path, methods in paths for method in methods if method != "get"]
    assert len(routes) >= 8
    for method, path in routes:
        assert (await browser.client.request(method, path)).status_code == 403, path

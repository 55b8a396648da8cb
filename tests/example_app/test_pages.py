"""What every page has: headers, a request ID, and a page of its own when something goes wrong."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest

from example_app import pages
from example_app.settings import Settings
from tests.example_app.browser import Browser
from tests.example_app.site import Site, serving


async def test_pages_may_load_nothing_from_elsewhere_and_are_kept_by_no_cache(browser: Browser) -> None:
    headers = (await browser.open("/")).headers
    assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'self'")
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert (await browser.open("/static/app.css")).headers["cache-control"] == "max-age=3600"


async def test_a_page_that_is_not_there_has_a_page_with_the_request_id(browser: Browser) -> None:
    page = await browser.client.get("/nowhere", headers={"X-Request-ID": "abc-123"})
    assert page.status_code == 404
    assert page.headers["X-Request-ID"] == "abc-123"
    assert "abc-123" in page.text
    assert "There is no page here." in page.text
    assert page.headers["x-frame-options"] == "DENY"


async def test_an_unexpected_error_has_a_page_with_the_request_id_and_tells_nothing_else(
    site: Site, browser: Browser
) -> None:
    @site.app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("the secret is 42")

    page = await browser.client.get("/broken", headers={"X-Request-ID": "abc-123"})
    assert page.status_code == 500
    assert page.headers["X-Request-ID"] == "abc-123"
    assert page.headers["x-frame-options"] == "DENY"
    assert "abc-123" in page.text
    assert "42" not in page.text


async def test_more_than_a_form_can_hold_is_refused(browser: Browser) -> None:
    page = await browser.client.post("/register", data={"email": "x" * 100_000})
    assert page.status_code == 413


async def test_a_file_is_refused_with_a_page(browser: Browser) -> None:
    page = await browser.client.post("/register", files={"email": b"ann@example.com"})
    assert page.status_code == 400
    assert "The request could not be read." in page.text


async def test_there_is_no_outbox_where_mail_goes_by_smtp(settings: Settings) -> None:
    by_smtp = Settings(database_url=settings.database_url, smtp_url="smtp://127.0.0.1:1", in_serve=False)
    async with serving(by_smtp) as site, site.visitor() as browser:
        assert (await browser.open("/outbox")).status_code == 404
        assert (await browser.open("/outbox/1")).status_code == 404
        assert "/outbox" not in (await browser.open("/")).text


async def test_a_mail_that_is_not_in_the_outbox_has_no_page(browser: Browser) -> None:
    assert (await browser.open("/outbox/1")).status_code == 404


def test_links_in_a_text_can_be_clicked_and_nothing_else_is_markup() -> None:
    linked = pages.linked('see https://a.example/?x=1&y=2 <b> & "c"')
    assert linked == (
        'see <a href="https://a.example/?x=1&amp;y=2">https://a.example/?x=1&amp;y=2</a> &lt;b&gt; &amp; &#34;c&#34;'
    )


def test_moments_are_shown_in_utc() -> None:
    assert pages.when(datetime(2026, 12, 1, 8, 30, 5, tzinfo=UTC)) == "2026-12-01 08:30:05 UTC"


async def test_the_log_says_where_the_mail_and_the_key_are(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="example_app"):
        async with serving(settings):
            pass
    said = [record.getMessage() for record in caplog.records if record.name.startswith("example_app")]
    assert any(line.startswith("SMTP_URL is not set") for line in said)
    assert any(line.startswith("SECRET_KEY is not set") for line in said)

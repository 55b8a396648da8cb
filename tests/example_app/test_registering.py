"""Registering, the mail that verifies the address, and the link in it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from urllib.parse import parse_qs, urlsplit

from sqlalchemy import event, update
from sqlalchemy.orm import Session

from example_app.models import Link, User
from tests.example_app.browser import Browser, problems
from tests.example_app.site import Site

VERIFY = "Verify your email address"
EXISTS = "You already have an account"


async def test_an_account_is_registered_verified_by_its_mail_and_signed_in(site: Site, browser: Browser) -> None:
    page = await browser.register("ann@example.com")
    assert page.url.path == "/check-mail"
    assert "ann@example.com" in page.text
    assert await browser.outbox() == []

    await site.queue.drain()
    assert await browser.outbox() == [("ann@example.com", VERIFY)]

    verified = await browser.verify(await browser.newest_link())
    assert "ann@example.com" in verified.text
    account = await browser.sign_in("ann@example.com")
    assert account.url.path == "/account"
    assert "ann@example.com" in account.text


@contextmanager
def commits_of_accounts_fail() -> Generator[None]:
    """Let every transaction fail that has an account in it, when all else in it is done."""

    def fail(session: Session) -> None:
        if any(isinstance(row, User) for row in session):
            raise RuntimeError("the database went away")

    event.listen(Session, "before_commit", fail)
    try:
        yield
    finally:
        event.remove(Session, "before_commit", fail)


async def test_an_error_after_the_push_leaves_no_account_and_no_mail(site: Site, browser: Browser) -> None:
    with commits_of_accounts_fail():
        page = await browser.register("ann@example.com")
    assert page.status_code == 500

    await site.queue.drain()
    assert await site.user("ann@example.com") is None
    assert await browser.outbox() == []

    await browser.register("ann@example.com")
    await site.queue.drain()
    assert await browser.outbox() == [("ann@example.com", VERIFY)]


async def test_nobody_learns_from_registering_whether_an_address_has_an_account(site: Site, browser: Browser) -> None:
    await site.has_account(browser, "ann@example.com")

    async with site.visitor() as stranger:
        taken = await stranger.register("ann@example.com", "another password")
        free = await stranger.register("bob@example.com", "another password")
    assert (taken.status_code, taken.url) == (free.status_code, free.url)
    assert without_secrets(taken.text) == without_secrets(free.text.replace("bob@", "ann@"))

    await site.queue.drain()
    assert ("ann@example.com", EXISTS) in await browser.outbox()
    account = await browser.sign_in("ann@example.com")
    assert account.url.path == "/account"


async def test_an_address_in_another_case_is_the_same_account(site: Site, browser: Browser) -> None:
    await site.has_account(browser, "Ann@example.com")
    await browser.register("ann@EXAMPLE.com")
    await site.queue.drain()
    assert (await browser.outbox())[0] == ("Ann@example.com", EXISTS)
    assert (await browser.sign_in("ANN@example.com")).url.path == "/account"


async def test_who_registers_an_unverified_address_again_takes_it_over(site: Site, browser: Browser) -> None:
    async with site.visitor() as stranger:
        await stranger.register("ann@example.com", "the stranger's password")
        await site.queue.drain()
        first_link = await stranger.newest_link()
        await browser.register("ann@example.com", "the owner's password")
        await site.queue.drain()

        assert (await browser.open(first_link)).status_code == 410
        await browser.verify(await browser.newest_link())
        assert (await browser.sign_in("ann@example.com", "the owner's password")).url.path == "/account"
        assert (await stranger.sign_in("ann@example.com", "the stranger's password")).status_code == 422


async def test_one_mail_waits_for_an_address_however_often_it_is_asked_for(site: Site, browser: Browser) -> None:
    await browser.register("ann@example.com")
    for _ in range(3):
        await browser.send("/check-mail", {"email": "ann@example.com"}, to="/resend")
    await site.queue.drain()
    assert await browser.outbox() == [("ann@example.com", VERIFY)]

    await browser.send("/check-mail", {"email": "ann@example.com"}, to="/resend")
    await site.queue.drain()
    assert await browser.outbox() == [("ann@example.com", VERIFY)] * 2


async def test_a_resend_to_an_unknown_or_verified_address_looks_the_same_and_sends_nothing(
    site: Site, browser: Browser
) -> None:
    await site.has_account(browser, "ann@example.com")
    before = await browser.outbox()
    verified = await browser.send("/check-mail", {"email": "ann@example.com"}, to="/resend")
    unknown = await browser.send("/check-mail", {"email": "bob@example.com"}, to="/resend")
    assert without_secrets(verified.text) == without_secrets(unknown.text.replace("bob@", "ann@"))
    await site.queue.drain()
    assert await browser.outbox() == before


async def test_a_mail_whose_account_was_verified_meanwhile_is_not_sent(site: Site, browser: Browser) -> None:
    await browser.register("ann@example.com")
    await site.queue.drain()
    await browser.send("/check-mail", {"email": "ann@example.com"}, to="/resend")
    await browser.verify(await browser.newest_link())
    await site.queue.drain()
    assert await browser.outbox() == [("ann@example.com", VERIFY)]


async def test_looking_at_a_link_does_not_use_it_up(site: Site, browser: Browser) -> None:
    await browser.register("ann@example.com")
    await site.queue.drain()
    link = await browser.newest_link()
    for _ in range(3):
        assert "Yes, verify it" in (await browser.open(link)).text
    assert (await browser.verify(link)).status_code == 200


async def test_a_link_works_once(site: Site, browser: Browser) -> None:
    await browser.register("ann@example.com")
    await site.queue.drain()
    link = await browser.newest_link()
    token = parse_qs(urlsplit(link).query)["token"][0]
    await browser.verify(link)

    assert (await browser.open(link)).status_code == 410
    again = await browser.send("/register", {"token": token}, to="/verify")
    assert again.status_code == 410
    assert "This link has ended" in again.text


async def test_a_link_works_for_a_day(site: Site, browser: Browser) -> None:
    await browser.register("ann@example.com")
    await site.queue.drain()
    link = await browser.newest_link()
    (kept,) = await site.links()
    assert kept.expires_at - datetime.now(UTC) <= timedelta(hours=24)

    async with site.changing() as db:
        await db.execute(update(Link).values(expires_at=datetime.now(UTC) - timedelta(seconds=1)))
    assert (await browser.open(link)).status_code == 410
    user = await site.user("ann@example.com")
    assert user is not None
    assert user.verified_at is None


async def test_a_token_is_kept_as_a_hash_only(site: Site, browser: Browser) -> None:
    await browser.register("ann@example.com")
    await site.queue.drain()
    token = parse_qs(urlsplit(await browser.newest_link()).query)["token"][0]
    (kept,) = await site.links()
    assert kept.token_hash == sha256(token.encode()).hexdigest()
    assert len(token) >= 43


async def test_a_form_that_is_filled_in_wrong_says_what_and_keeps_what_was_typed(browser: Browser) -> None:
    page = await browser.register("ann at example.com", "short")
    assert page.status_code == 422
    assert problems(page) == [
        "An email address has an @ in it, as in ann@example.com.",
        "Choose at least 8 characters.",
    ]
    assert 'value="ann at example.com"' in page.text
    assert "short" not in page.text


async def test_a_form_without_its_fields_says_what_is_missing(browser: Browser) -> None:
    page = await browser.send("/register", {})
    assert page.status_code == 422
    assert problems(page) == ["Type your email address.", "Choose at least 8 characters."]


async def test_what_was_typed_is_shown_as_text_and_never_as_markup(browser: Browser) -> None:
    page = await browser.register('"><script>alert(1)</script>@example.com')
    assert page.status_code == 422
    assert "<script>" not in page.text


def without_secrets(page: str) -> str:
    """Take out of a page what differs from one visit to the next."""
    return "\n".join(line for line in page.splitlines() if "form_token" not in line)

"""The account page, and changing the address of an account."""

from __future__ import annotations

from tests.example_app.browser import PASSWORD, Browser, problems
from tests.example_app.site import Site

CHANGING = "Your email address is about to change"
EXISTS = "You already have an account"
VERIFY = "Verify your email address"


async def signed_in(site: Site, browser: Browser, email: str = "ann@example.com") -> None:
    """Register, verify and sign in."""
    await site.has_account(browser, email)
    await browser.sign_in(email)


async def ask_for(browser: Browser, email: str, password: str = PASSWORD) -> list[str]:
    """Ask for another address and return what is wrong with that."""
    return problems(await browser.send("/account", {"email": email, "password": password}, to="/account/email"))


async def test_a_new_address_replaces_the_old_one_once_it_is_verified(site: Site, browser: Browser) -> None:
    await signed_in(site, browser)
    assert await ask_for(browser, "new@example.org") == []
    await site.queue.drain()
    sent = await browser.outbox()
    assert sorted(sent[:2]) == [("ann@example.com", CHANGING), ("new@example.org", VERIFY)]
    assert await site.user("ann@example.com") is not None

    page = await browser.open("/account")
    assert "new@example.org" in page.text
    async with site.visitor() as elsewhere:
        assert (await elsewhere.verify(await elsewhere.newest_link(to="new@example.org"))).status_code == 200
    assert await site.user("ann@example.com") is None
    assert "new@example.org" in (await browser.open("/account")).text
    async with site.visitor() as again:
        assert (await again.sign_in("ann@example.com")).status_code == 422
        assert (await again.sign_in("new@example.org")).url.path == "/account"


async def test_a_change_needs_the_password(site: Site, browser: Browser) -> None:
    await signed_in(site, browser)
    assert await ask_for(browser, "new@example.org", "not the password") == ["The password is not right."]
    await site.queue.drain()
    assert len(await browser.outbox()) == 1


async def test_an_address_that_is_the_same_or_cannot_be_is_refused(site: Site, browser: Browser) -> None:
    await signed_in(site, browser)
    assert await ask_for(browser, "ANN@example.com") == ["This is your address already."]
    assert await ask_for(browser, "nowhere") == ["An email address has an @ in it, as in ann@example.com."]


async def test_nobody_learns_from_a_change_whether_an_address_has_an_account(site: Site, browser: Browser) -> None:
    async with site.visitor() as bob:
        await site.has_account(bob, "bob@example.com")
    await signed_in(site, browser)
    taken = await browser.send("/account", {"email": "bob@example.com", "password": PASSWORD}, to="/account/email")
    free = await browser.send("/account", {"email": "new@example.org", "password": PASSWORD}, to="/account/email")
    assert taken.text == free.text.replace("new@example.org", "bob@example.com")
    await site.queue.drain()
    assert ("bob@example.com", EXISTS) in await browser.outbox()
    assert ("bob@example.com", VERIFY) not in (await browser.outbox())[:-2]


async def test_a_change_that_was_cancelled_leaves_no_link(site: Site, browser: Browser) -> None:
    await signed_in(site, browser)
    await ask_for(browser, "new@example.org")
    await browser.send("/account", {}, to="/account/email/cancel")
    await site.queue.drain()
    assert await site.links() == []
    assert len(await browser.outbox()) == 1
    assert "new@example.org" not in (await browser.open("/account")).text


async def test_an_address_taken_between_the_mail_and_the_link_stays_with_who_took_it(
    site: Site, browser: Browser
) -> None:
    await signed_in(site, browser)
    await ask_for(browser, "new@example.org")
    await site.queue.drain()
    link = await browser.newest_link(to="new@example.org")
    async with site.visitor() as other:
        await site.has_account(other, "new@example.org")
    assert (await browser.verify(link)).status_code == 410
    assert "ann@example.com" in (await browser.open("/account")).text

"""A visitor of the example app: opens pages, fills in forms, reads the outbox."""

from __future__ import annotations

import html
import re

from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient, Response

__all__ = ["PASSWORD", "Browser", "form_token", "problems"]

PASSWORD = "correct horse battery"


class Browser:
    """Talks to the app over `client`, which keeps its cookies."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client

    @classmethod
    def of(cls, app: FastAPI, *, ip: str = "192.0.2.1", base_url: str = "http://test") -> Browser:
        """Open a browser of its own on an app in this process."""
        transport = ASGITransport(app, raise_app_exceptions=False, client=(ip, 50000))
        return cls(AsyncClient(transport=transport, base_url=base_url, timeout=30))

    async def open(self, path: str) -> Response:
        """Open a page, going where it sends the browser."""
        return await self.client.get(path, follow_redirects=True)

    async def send(self, page: str, fields: dict[str, str], *, to: str | None = None) -> Response:
        """Send the form of a page, and go where the answer leads."""
        token = form_token(await self.open(page))
        data = {"form_token": token, **fields}
        return await self.client.post(to or page, data=data, follow_redirects=True)

    async def register(self, email: str, password: str = PASSWORD) -> Response:
        """Register an address."""
        return await self.send("/register", {"email": email, "password": password})

    async def sign_in(self, email: str, password: str = PASSWORD) -> Response:
        """Sign in."""
        return await self.send("/sign-in", {"email": email, "password": password})

    async def verify(self, link: str) -> Response:
        """Open a mailed link and press its button."""
        page = await self.open(link)
        token = re.search(r'name="token" value="([^"]+)"', page.text)
        assert token, page.text
        data = {"form_token": form_token(page), "token": token[1]}
        return await self.client.post("/verify", data=data)

    async def outbox(self) -> list[tuple[str, str]]:
        """Read the outbox: recipient and subject of each mail, the newest first."""
        return [(to, subject) for _, to, subject in await self._outbox()]

    async def newest_link(self, *, to: str | None = None) -> str:
        """Take the link out of the newest mail that verifies an address, or this address."""
        for path, recipient, subject in await self._outbox():
            if subject == "Verify your email address" and to in (None, recipient):
                mail = (await self.open(path)).text
                link = re.search(r'<a href="[^"]*(/verify\?token=[^"]+)"', mail)
                assert link, mail
                return html.unescape(link[1])
        raise LookupError(f"no mail to verify {to or 'an address'} in the outbox")

    async def _outbox(self) -> list[tuple[str, str, str]]:
        page = await self.open("/outbox")
        rows = re.findall(r'<td>([^<]+)</td>\s*<td><a href="(/outbox/\d+)">([^<]+)</a>', page.text)
        return [(path, html.unescape(to), subject) for to, path, subject in rows]


def form_token(page: Response) -> str:
    """Take the token out of a page's form."""
    token = re.search(r'name="form_token" value="([^"]+)"', page.text)
    assert token, page.text
    return token[1]


def problems(page: Response) -> list[str]:
    """Read what a page says is wrong."""
    return [html.unescape(said) for said in re.findall(r'class="problem[^>]*>([^<]+)<', page.text)]

"""Who is asking: the signed session cookie, the forms that belong to it, and the account it is signed in to."""

from __future__ import annotations

import hmac
import secrets
from typing import Annotated

from fastapi import Depends, HTTPException, Request
from starlette.middleware.sessions import SessionMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from example_app.database import DatabaseDep
from example_app.models import User

__all__ = ["SignedInDep", "SignedSession", "check_form_token", "form_token", "sign_in", "sign_out"]

_SAFE = {"GET", "HEAD", "OPTIONS"}


class SignedSession:
    """Starlette's session cookie, signed with a key that is known only once the app has started.

    Args:
        secure: Whether browsers reach the app by https, so that they send the cookie by nothing less.
    """

    def __init__(self, app: ASGIApp, *, secure: bool) -> None:
        self._app = app
        self._secure = secure
        self._signed: SessionMiddleware | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._signed is None:
            self._signed = SessionMiddleware(
                self._app,
                secret_key=scope["app"].state.secret_key,
                session_cookie="__Host-session" if self._secure else "session",
                https_only=self._secure,
            )
        await self._signed(scope, receive, send)


def form_token(request: Request) -> str:
    """Return the token that every form of this session has to hand back."""
    token: str = request.session.setdefault("form", secrets.token_urlsafe(32))
    return token


async def check_form_token(request: Request) -> None:
    """Refuse a request that changes something and does not come from a page of this session."""
    if request.method in _SAFE:
        return
    given = (await request.form(max_files=0, max_fields=20)).get("form_token")
    expected = request.session.get("form")
    if not (isinstance(given, str) and expected and hmac.compare_digest(given.encode(), expected.encode())):
        raise HTTPException(403, "This page was open for too long. Go back, reload it, and send the form again.")


def sign_in(request: Request, user: User) -> None:
    """Begin a session of its own for the account; nothing of the visitor's earlier one is kept."""
    request.session.clear()
    request.session.update(user=user.id, version=user.session_version, form=secrets.token_urlsafe(32))


def sign_out(request: Request) -> None:
    """End this session."""
    request.session.clear()


async def _signed_in(request: Request, database: DatabaseDep) -> User:
    if "user" in request.session:
        async with database.sessions() as db:
            user = await db.get(User, request.session["user"])
        if user and user.session_version == request.session["version"]:
            return user
        sign_out(request)
    raise HTTPException(303, headers={"Location": "/sign-in"})


SignedInDep = Annotated[User, Depends(_signed_in)]
"""The account of the session; visitors without one are sent to the sign-in page."""

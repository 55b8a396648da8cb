"""Headers that tell browsers how little a page of ours may do."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["SecurityHeaders", "set_headers"]

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class SecurityHeaders:
    """Set the headers on every response.

    Args:
        secure: Whether browsers reach the app by https, and are to come by nothing else from now on.
    """

    def __init__(self, app: ASGIApp, *, secure: bool) -> None:
        self._app = app
        self._secure = secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                set_headers(MutableHeaders(scope=message), path=scope["path"], secure=self._secure)
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)


def set_headers(headers: MutableHeaders, *, path: str, secure: bool) -> None:
    """Set them on one response. Pages are never kept by a cache: they hold what one visitor may see."""
    for name, value in _HEADERS.items():
        headers[name] = value
    if secure:
        headers["Strict-Transport-Security"] = "max-age=31536000"
    headers["Cache-Control"] = "max-age=3600" if path.startswith("/static/") else "no-store"

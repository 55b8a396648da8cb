"""Pages, and the pages that say what went wrong."""

from __future__ import annotations

import re
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse, Response
from fastapi.templating import Jinja2Templates
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException

from example_app.forms import Form
from example_app.headers import set_headers
from example_app.settings import Settings
from example_app.visitors import form_token
from fastqueue.starlette import request_id

__all__ = ["FOLDER", "add_error_pages", "linked", "see", "show", "when"]

FOLDER = Path(__file__).parent

_templates = Jinja2Templates(FOLDER / "templates")
_templates.env.trim_blocks = _templates.env.lstrip_blocks = True
_URL = re.compile(r"https?://[^\s<>\"]+")

_SAYS = {
    400: ("That did not work", "The request could not be read."),
    403: ("That did not work", "This is not allowed."),
    404: ("Not found", "There is no page here."),
    405: ("Not found", "There is no page here."),
    413: ("Too much", "That was more than a form can hold."),
    422: ("That did not work", "The request could not be read."),
    500: ("Something broke", "It is our fault, and it has been written down."),
}


def show(request: Request, name: str, *, status: int = 200, form: Form | None = None, **values: Any) -> Response:
    """Render a page.

    Args:
        name: The template, without its ending.
        status: The HTTP status.
        form: The form on the page, with what was typed and what is wrong. None: an empty one.
        values: What the template shows.
    """
    settings: Settings = request.app.state.settings
    return _templates.TemplateResponse(
        request,
        f"{name}.html",
        {
            "form": form or Form(),
            "form_token": partial(form_token, request),
            "has_outbox": settings.smtp_url is None,
            "signed_in": "user" in request.session,
            **values,
        },
        status_code=status,
    )


def see(path: str) -> Response:
    """Answer a form that was sent: the browser goes on to a page, and a reload sends nothing again."""
    return RedirectResponse(path, status_code=303)


def add_error_pages(app: FastAPI) -> None:
    """Give the app's errors pages in its own style, which show the request's ID."""
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unexpected_error)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code < 400:
        return Response(status_code=error.status_code, headers=error.headers)
    title, text = _SAYS.get(error.status_code, _SAYS[400])
    if error.status_code == 403:
        text = error.detail
    response = show(request, "error", status=error.status_code, title=title, text=text, request_id=request_id())
    response.headers.update(error.headers or {})
    return response


async def _unexpected_error(request: Request, _error: Exception) -> Response:
    # Starlette answers this one outside every middleware: no session, no header is set for us.
    request.scope.setdefault("session", {})
    title, text = _SAYS[500]
    ours = request_id()
    response = show(request, "error", status=500, title=title, text=text, request_id=ours)
    settings: Settings = request.app.state.settings
    set_headers(response.headers, path=request.url.path, secure=settings.secure)
    if ours:
        response.headers["X-Request-ID"] = ours
    return response


def when(moment: datetime) -> str:
    """Show a moment."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def linked(text: str) -> Markup:
    """Make the links in a plain text clickable."""
    parts: list[Markup] = []
    end = 0
    for found in _URL.finditer(text):
        parts += [escape(text[end : found.start()]), Markup('<a href="{0}">{0}</a>').format(found[0])]
        end = found.end()
    return Markup("").join([*parts, escape(text[end:])])


_templates.env.filters.update(when=when, linked=linked)

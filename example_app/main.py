"""The app, put together. `uvicorn example_app.main:app` serves it, and so does `python -m example_app`."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware

from example_app import logs
from example_app.database import Database
from example_app.headers import SecurityHeaders
from example_app.keys import kept_key
from example_app.kinds import MailKinds, queue_for
from example_app.mail import mailer_for
from example_app.pages import FOLDER, add_error_pages
from example_app.routes import account, outbox, registering, sessions
from example_app.settings import Settings
from example_app.visitors import SignedSession, check_form_token
from fastqueue.fastapi import lifespan
from fastqueue.starlette import RequestIDMiddleware

__all__ = ["app", "create_app"]

logger = logging.getLogger(__name__)

_LARGEST_FORM = 64 * 1024


def create_app(settings: Settings) -> FastAPI:
    """Put the app together. Nothing is opened before the server starts it.

    Args:
        settings: How this instance runs.

    Returns:
        The app; `app.state.queue` and `app.state.database` are what it works with.
    """
    database = Database(settings.database_url)
    queue = queue_for(settings)
    mails = MailKinds(database, mailer_for(settings, database), app_url=settings.app_url)
    queue.include(mails.kinds)

    @asynccontextmanager
    async def open_database(app: FastAPI) -> AsyncGenerator[None]:
        logs.set_up()
        if settings.smtp_url is None:
            logger.warning("SMTP_URL is not set: mail is kept at /outbox, for everybody to read")
        try:
            await database.open()
            app.state.secret_key = settings.secret_key or await kept_key(database)
            yield
        finally:
            await database.close()

    app = FastAPI(
        title="Example app",
        lifespan=lifespan(queue, open_database, run=settings.in_serve),
        openapi_url=None,
        dependencies=[Depends(check_form_token)],
        middleware=[
            Middleware(RequestIDMiddleware),
            Middleware(SecurityHeaders, secure=settings.secure),
            Middleware(RequestBodyLimitMiddleware, max_body_size=_LARGEST_FORM),
            Middleware(SignedSession, secure=settings.secure),
        ],
    )
    app.state.settings, app.state.database, app.state.queue = settings, database, queue
    app.include_router(registering.routes(queue, mails))
    app.include_router(sessions.router)
    app.include_router(account.routes(queue, mails))
    if settings.smtp_url is None:
        app.include_router(outbox.routes(queue))
    app.mount("/static", StaticFiles(directory=FOLDER / "static"))
    add_error_pages(app)
    return app


app = create_app(Settings.from_environ())

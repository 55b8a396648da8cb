"""The outbox: mail that no server was there to take, for a developer to read. It is not there when there is one.

It can be shut. A mail then fails as with a server that refuses it, is listed with its error, and can be sent again.
"""

from typing import Annotated

from fastapi import APIRouter, Form, HTTPException, Request
from fastapi.responses import Response
from sqlalchemy import select

from example_app.database import DatabaseDep, SessionDep
from example_app.models import OutboxMail, OutboxShut
from example_app.pages import see, show
from fastqueue import Queue

__all__ = ["routes"]

_SHOWN = 100


def routes(queue: Queue) -> APIRouter:
    """Return the pages of the outbox, which show the failed jobs of the queue."""
    router = APIRouter()

    @router.get("/outbox")
    async def outbox(request: Request, database: DatabaseDep, soon: bool = False) -> Response:
        async with database.sessions() as db:
            mails = (await db.scalars(select(OutboxMail).order_by(OutboxMail.id.desc()).limit(_SHOWN))).all()
            shut = await db.get(OutboxShut, 1)
        failed = await queue.failed(limit=_SHOWN)
        return show(request, "outbox", mails=mails, failed=failed, shut=shut, soon=soon)

    @router.get("/outbox/{mail_id:int}")
    async def outbox_mail(request: Request, mail_id: int, database: DatabaseDep) -> Response:
        async with database.sessions() as db:
            mail = await db.get(OutboxMail, mail_id)
        if mail is None:
            raise HTTPException(404)
        return show(request, "outbox_mail", mail=mail)

    @router.post("/outbox/shut")
    async def shut(db: SessionDep) -> Response:
        await db.merge(OutboxShut(id=1))
        return see("/outbox")

    @router.post("/outbox/open")
    async def open_again(db: SessionDep) -> Response:
        if closed := await db.get(OutboxShut, 1):
            await db.delete(closed)
        return see("/outbox")

    @router.post("/outbox/again")
    async def send_again(job: Annotated[int, Form()]) -> Response:
        await queue.run_again(job)
        return see("/outbox?soon=yes")

    return router

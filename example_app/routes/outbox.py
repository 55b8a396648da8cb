"""The outbox: mail that no server was there to take, for a developer to read. It is not there when there is one."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import Response
from sqlalchemy import select

from example_app.database import DatabaseDep
from example_app.models import OutboxMail
from example_app.pages import show

__all__ = ["router"]

router = APIRouter()

_SHOWN = 100


@router.get("/outbox")
async def outbox(request: Request, database: DatabaseDep) -> Response:
    """List the newest mails."""
    async with database.sessions() as db:
        mails = (await db.scalars(select(OutboxMail).order_by(OutboxMail.id.desc()).limit(_SHOWN))).all()
    return show(request, "outbox", mails=mails)


@router.get("/outbox/{mail_id:int}")
async def outbox_mail(request: Request, mail_id: int, database: DatabaseDep) -> Response:
    """Show one mail, its links ready to be clicked."""
    async with database.sessions() as db:
        mail = await db.get(OutboxMail, mail_id)
    if mail is None:
        raise HTTPException(404)
    return show(request, "outbox_mail", mail=mail)

"""Registering, and verifying the address."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from example_app import accounts, links, passwords
from example_app.database import DatabaseDep, SessionDep
from example_app.forms import FormDep
from example_app.kinds import AccountExists, MailKinds, VerifyMail
from example_app.pages import see, show
from example_app.routes.limits import may_send_mail, too_often
from fastqueue import Queue
from fastqueue.fastapi import Jobs, transactional

__all__ = ["routes"]


def routes(queue: Queue, mails: MailKinds) -> APIRouter:
    """Return the pages that lead to a verified account; their mail goes with the request's transaction."""
    router = APIRouter()
    jobs = transactional(queue, SessionDep)

    @router.get("/")
    async def home(request: Request) -> Response:
        return show(request, "home")

    @router.get("/register")
    async def register_page(request: Request) -> Response:
        return show(request, "register")

    @router.post("/register")
    async def register(
        request: Request,
        form: FormDep,
        database: DatabaseDep,
        db: SessionDep,
        jobs: Annotated[Jobs, Depends(jobs)],
    ) -> Response:
        email, password = form.email(), form.new_password()
        if form.problems:
            return show(request, "register", form=form, status=422)
        if wait := await may_send_mail(request, database, email):
            return too_often(request, "register", form, wait)
        password_hash = await passwords.hashed(password)
        user = await accounts.register(db, email=email, password_hash=password_hash)
        if user.verified_at is None:
            await jobs(mails.verify_mail).push(VerifyMail(user=user.id, email=user.email))
        else:
            await jobs(mails.account_exists).push(AccountExists(user=user.id))
        request.session["mailed"] = email
        return see("/check-mail")

    @router.get("/check-mail")
    async def check_mail(request: Request) -> Response:
        return show(request, "check_mail", email=request.session.get("mailed", ""))

    @router.post("/resend")
    async def resend(
        request: Request,
        form: FormDep,
        database: DatabaseDep,
        db: SessionDep,
        jobs: Annotated[Jobs, Depends(jobs)],
    ) -> Response:
        email = form.email()
        if form.problems:
            return show(request, "check_mail", form=form, status=422)
        if wait := await may_send_mail(request, database, email):
            return too_often(request, "check_mail", form, wait)
        user = await accounts.find(db, email)
        if user and user.verified_at is None:
            await jobs(mails.verify_mail).push(VerifyMail(user=user.id, email=user.email))
        request.session["mailed"] = email
        return see("/check-mail")

    @router.get("/verify")
    async def verify_page(request: Request, db: SessionDep, token: str = "") -> Response:
        # Mail scanners open links: looking at one uses nothing up, only the button does.
        link = await links.find(db, token)
        if link is None:
            return show(request, "dead_link", status=410)
        return show(request, "verify", token=token, email=link.email)

    @router.post("/verify")
    async def verify(request: Request, form: FormDep, db: SessionDep) -> Response:
        user = await accounts.verify(db, form.fields.get("token", ""))
        if user is None:
            return show(request, "dead_link", status=410)
        return show(request, "verified", email=user.email)

    return router

"""The account page, and changing the address."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from example_app import accounts, links, passwords
from example_app.database import DatabaseDep, SessionDep
from example_app.forms import FormDep, email_key
from example_app.kinds import AccountExists, EmailChanging, MailKinds, VerifyMail
from example_app.models import User
from example_app.pages import see, show
from example_app.routes.limits import may_send_mail, may_try_password, password_was_right, too_often
from example_app.visitors import SignedInDep
from fastqueue import Queue
from fastqueue.fastapi import Jobs, transactional

__all__ = ["routes"]


def routes(queue: Queue, mails: MailKinds) -> APIRouter:
    """Return the pages of who is signed in; their mail goes with the request's transaction."""
    router = APIRouter()
    jobs = transactional(queue, SessionDep)

    @router.get("/account")
    async def account(request: Request, visitor: SignedInDep) -> Response:
        return show(request, "account", user=visitor)

    @router.post("/account/email")
    async def change_email(
        request: Request,
        visitor: SignedInDep,
        form: FormDep,
        database: DatabaseDep,
        db: SessionDep,
        jobs: Annotated[Jobs, Depends(jobs)],
    ) -> Response:
        email, password = form.email(), form.password()
        if email and email_key(email) == visitor.email_key:
            form.problems["email"] = "This is your address already."
        if form.problems:
            return show(request, "account", form=form, status=422, user=visitor)
        wait = await may_try_password(request, database, visitor.email)
        if wait := wait or await may_send_mail(request, database, email):
            return too_often(request, "account", form, wait, user=visitor)
        if not await passwords.matches(password, visitor.password_hash):
            form.problems["password"] = "The password is not right."  # noqa: S105 - a text for people
            return show(request, "account", form=form, status=422, user=visitor)
        await password_was_right(database, visitor.email)
        user = await db.get_one(User, visitor.id)
        owner = await accounts.ask_for_email(db, user, email)
        if owner is user:
            await jobs(mails.verify_mail).push(VerifyMail(user=user.id, email=email))
        else:
            await jobs(mails.account_exists).push(AccountExists(user=owner.id))
        await jobs(mails.email_changing).push(EmailChanging(user=user.id, new_email=email))
        return see("/account")

    @router.post("/account/email/cancel")
    async def keep_email(visitor: SignedInDep, db: SessionDep) -> Response:
        user = await db.get_one(User, visitor.id)
        user.new_email = None
        await links.forget(db, user=user.id)
        return see("/account")

    return router

"""Signing in and out."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from example_app import accounts, passwords
from example_app.database import DatabaseDep, SessionDep
from example_app.forms import FormDep
from example_app.models import User
from example_app.pages import see, show
from example_app.routes.limits import may_try_password, password_was_right, too_often
from example_app.visitors import SignedInDep, sign_in, sign_out

__all__ = ["router"]

router = APIRouter()


@router.get("/sign-in")
async def sign_in_page(request: Request) -> Response:
    """Show the form."""
    return show(request, "sign_in")


@router.post("/sign-in")
async def sign_in_with(request: Request, form: FormDep, database: DatabaseDep) -> Response:
    """Sign in, saying the same of a wrong password and of an address that has no account."""
    email, password = form.email(), form.password()
    if form.problems:
        return show(request, "sign_in", form=form, status=422)
    if wait := await may_try_password(request, database, email):
        return too_often(request, "sign_in", form, wait)
    async with database.sessions() as db:
        user = await accounts.find(db, email)
    right = await passwords.matches(password, user.password_hash if user else None)
    if user is None or not right:
        form.problems["form"] = "The address or the password is not right."
        return show(request, "sign_in", form=form, status=422)
    await password_was_right(database, email)
    if user.verified_at is None:
        request.session["mailed"] = user.email
        return see("/check-mail")
    sign_in(request, user)
    return see("/account")


@router.post("/sign-out")
async def sign_out_here(request: Request) -> Response:
    """End this session."""
    sign_out(request)
    return see("/")


@router.post("/sign-out-everywhere")
async def sign_out_everywhere(request: Request, visitor: SignedInDep, db: SessionDep) -> Response:
    """End every session of the account, wherever it is."""
    accounts.sign_out_everywhere(await db.get_one(User, visitor.id))
    sign_out(request)
    return see("/sign-in")

"""How often a visitor may try: passwords, and forms that send mail."""

from __future__ import annotations

from datetime import timedelta

from fastapi import Request
from fastapi.responses import Response

from example_app.database import Database
from example_app.forms import Form, email_key
from example_app.pages import show
from example_app.throttle import Throttle, client_of

__all__ = ["may_send_mail", "may_try_password", "password_was_right", "too_often"]

_QUARTER = timedelta(minutes=15)
_PASSWORDS_OF_ADDRESS = Throttle(name="password, address", most=10, window=_QUARTER)
_PASSWORDS_OF_CLIENT = Throttle(name="password, client", most=50, window=_QUARTER)
_MAILS_TO_ADDRESS = Throttle(name="mail, address", most=5, window=_QUARTER)
_MAILS_OF_CLIENT = Throttle(name="mail, client", most=20, window=_QUARTER)


async def may_try_password(request: Request, database: Database, email: str) -> int:
    """Count a try of a password and return the seconds to wait. 0: it may go on."""
    return max(
        await _PASSWORDS_OF_CLIENT.hit(database, client_of(request)),
        await _PASSWORDS_OF_ADDRESS.hit(database, email_key(email)),
    )


async def password_was_right(database: Database, email: str) -> None:
    """Let the owner of the address begin to count anew."""
    await _PASSWORDS_OF_ADDRESS.clear(database, email_key(email))


async def may_send_mail(request: Request, database: Database, email: str) -> int:
    """Count a mail that a visitor asks for and return the seconds to wait. 0: it may go on."""
    return max(
        await _MAILS_OF_CLIENT.hit(database, client_of(request)),
        await _MAILS_TO_ADDRESS.hit(database, email_key(email)),
    )


def too_often(request: Request, page: str, form: Form, wait: int, **values: object) -> Response:
    """Show the page again, and say when to come back."""
    minutes = -(-wait // 60)
    form.problems["form"] = (
        f"That was tried too often. Wait {minutes} {'minute' if minutes == 1 else 'minutes'}, then try again."
    )
    response = show(request, page, form=form, status=429, **values)
    response.headers["Retry-After"] = str(wait)
    return response

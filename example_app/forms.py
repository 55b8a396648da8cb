"""What was typed into a form, and what is wrong with it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Annotated

from fastapi import Depends, Request

from example_app import passwords

__all__ = ["Form", "FormDep", "email_key"]

_LOCAL = re.compile(r"[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*", re.IGNORECASE)
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class Form:
    """The fields of a form, read one by one; each reader notes a problem and goes on.

    Attributes:
        fields: What was typed, by name, ready to be shown again. Passwords are never shown.
        problems: What is wrong, by name of the field; empty when nothing is.
    """

    def __init__(self, fields: Mapping[str, str] | None = None) -> None:
        self.fields = dict(fields or {})
        self.problems: dict[str, str] = {}

    def email(self, name: str = "email") -> str:
        """Read an address."""
        typed = self.fields.get(name, "").strip()
        try:
            return _address(typed)
        except ValueError as error:
            self.problems[name] = str(error)
            return ""

    def password(self, name: str = "password") -> str:
        """Read a password that there is already."""
        password = self.fields.get(name, "")
        if not password:
            self.problems[name] = "Type your password."
        elif len(password) > passwords.LONGEST:
            self.problems[name] = f"Passwords have at most {passwords.LONGEST} characters."
        return password

    def new_password(self, name: str = "password") -> str:
        """Read a password that is to be."""
        password = self.fields.get(name, "")
        if len(password) < passwords.SHORTEST:
            self.problems[name] = f"Choose at least {passwords.SHORTEST} characters."
        elif len(password) > passwords.LONGEST:
            self.problems[name] = f"Choose at most {passwords.LONGEST} characters."
        return password


async def _posted(request: Request) -> Form:
    return Form({name: value for name, value in (await request.form()).items() if isinstance(value, str)})


FormDep = Annotated[Form, Depends(_posted)]
"""The form that was posted."""


def email_key(email: str) -> str:
    """Return what tells addresses apart: nobody means another mailbox by another case."""
    return email.lower()


def _address(typed: str) -> str:
    """Check an address and give its domain the one form that mail servers know. Only a mail can tell the rest."""
    if not typed:
        raise ValueError("Type your email address.")
    local, at, domain = typed.rpartition("@")
    if not at:
        raise ValueError("An email address has an @ in it, as in ann@example.com.")
    if not _LOCAL.fullmatch(local) or len(local) > 64:
        raise ValueError("The part before the @ cannot be right. Letters, digits, and dots between them are.")
    email = f"{local}@{_domain(domain)}"
    if len(email) > 254:
        raise ValueError("An email address has at most 254 characters.")
    return email


def _domain(typed: str) -> str:
    wrong = ValueError("The part after the @ cannot be right. It is a domain, as in ann@example.com.")
    try:
        domain = unicodedata.normalize("NFKC", typed).lower().encode("idna").decode()
    except UnicodeError:
        raise wrong from None
    labels = domain.split(".")
    if len(labels) < 2 or labels[-1].isdigit() or not all(_LABEL.fullmatch(label) for label in labels):
        raise wrong
    return domain

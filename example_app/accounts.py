"""What can become of an account. Nothing here sends mail: the routes push it in the same transaction."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from example_app import links
from example_app.forms import email_key
from example_app.models import User

__all__ = ["ask_for_email", "find", "register", "sign_out_everywhere", "verify"]


async def find(db: AsyncSession, email: str) -> User | None:
    """Return the account that has the address."""
    return await db.scalar(select(User).where(User.email_key == email_key(email)))


async def register(db: AsyncSession, *, email: str, password_hash: str) -> User:
    """Return the account of the address, made now if there is none.

    A verified account is returned as it is. One that nobody has verified yet takes the new password, and its earlier
    links end: whoever registers somebody else's address first must not have a way into what its owner verifies.
    """
    user = await find(db, email)
    if user is None:
        user = User(email=email, email_key=email_key(email), password_hash=password_hash)
        try:
            async with db.begin_nested():
                db.add(user)
        except IntegrityError:
            # The same form was sent twice at once, and the other one came first.
            taken = select(User).where(User.email_key == email_key(email)).with_for_update(read=True)
            user = (await db.scalars(taken)).one()
    elif user.verified_at is None:
        user.password_hash = password_hash
        await links.forget(db, user=user.id)
    return user


async def ask_for_email(db: AsyncSession, user: User, email: str) -> User:
    """Note that the account wants another address, and return whose it is now: its own, or the account that has it.

    The old address stays until the new one is verified.
    """
    user.new_email = email
    await links.forget(db, user=user.id)
    owner = await find(db, email)
    return owner or user


async def verify(db: AsyncSession, token: str) -> User | None:
    """Use a link up: the account is verified, or has its new address. None: the link shows nothing any more."""
    link = await links.use(db, token)
    if link is None:
        return None
    user = await db.get_one(User, link.user_id, with_for_update=True)
    if link.email == user.new_email:
        if not await _take_email(db, user, link.email):
            return None
    elif link.email != user.email:
        return None
    user.verified_at = user.verified_at or datetime.now(UTC)
    await links.forget(db, user=user.id)
    return user


async def _take_email(db: AsyncSession, user: User, email: str) -> bool:
    """Replace the address by the new one. False: another account has it by now."""
    try:
        async with db.begin_nested():
            user.email, user.email_key, user.new_email = email, email_key(email), None
    except IntegrityError:
        return False
    return True


def sign_out_everywhere(user: User) -> None:
    """End every session of the account."""
    user.session_version += 1

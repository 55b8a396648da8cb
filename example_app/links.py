"""Links that prove that somebody reads an address: single-use, for a day, kept as hashes."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from sqlalchemy import Select, delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from example_app.models import Link

__all__ = ["LASTS", "find", "forget", "make", "use"]

LASTS = timedelta(hours=24)


async def make(db: AsyncSession, *, user: int, email: str) -> str:
    """Make a link for an account and an address. Its token is returned here, and is nowhere else."""
    now = datetime.now(UTC)
    await db.execute(delete(Link).where(Link.expires_at <= now))
    token = secrets.token_urlsafe(32)
    db.add(Link(token_hash=_hash(token), user_id=user, email=email, expires_at=now + LASTS))
    await db.flush()
    return token


async def find(db: AsyncSession, token: str) -> Link | None:
    """Look a token up. None: it was never made, is used, or has expired."""
    return await db.scalar(_alive(token))


async def use(db: AsyncSession, token: str) -> Link | None:
    """Use a token up. Of any number of uses at once, one gets the link."""
    link = await db.scalar(_alive(token).with_for_update())
    if link is not None:
        await db.delete(link)
        await db.flush()
    return link


async def forget(db: AsyncSession, *, user: int) -> None:
    """End every link of an account."""
    await db.execute(delete(Link).where(Link.user_id == user))


def _alive(token: str) -> Select[Link]:
    return select(Link).where(Link.token_hash == _hash(token), Link.expires_at > datetime.now(UTC))


def _hash(token: str) -> str:
    return sha256(token.encode()).hexdigest()

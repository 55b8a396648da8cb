"""The key that signs sessions."""

from __future__ import annotations

import logging
import secrets

from sqlalchemy.exc import IntegrityError

from example_app.database import Database
from example_app.models import KeptSecret

__all__ = ["kept_key"]

logger = logging.getLogger(__name__)


async def kept_key(database: Database) -> str:
    """Return the key that the database keeps, made at the first start, so that a restart signs nobody out."""
    logger.warning("SECRET_KEY is not set: sessions are signed with a key that is kept in the database")
    try:
        async with database.sessions.begin() as db:
            kept = await db.get(KeptSecret, "session-key")
            if kept is None:
                kept = KeptSecret(name="session-key", value=secrets.token_urlsafe(32))
                db.add(kept)
        return kept.value
    except IntegrityError:
        # Another instance that starts now has made it.
        async with database.sessions() as db:
            return (await db.get_one(KeptSecret, "session-key")).value

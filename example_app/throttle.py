"""How often something may be tried, counted in the database so that it holds over all instances."""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from fastapi import Request
from sqlalchemy import delete
from sqlalchemy.exc import DBAPIError

from example_app.database import Database
from example_app.models import Tries

__all__ = ["Throttle", "client_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle:
    """At most `most` tries for each subject in a window that begins with the first of them.

    Attributes:
        name: What is tried. Throttles of one name share their counts.
        most: How many tries pass in a window.
        window: How long a window lasts.
    """

    name: str
    most: int
    window: timedelta

    async def hit(self, database: Database, subject: str) -> int:
        """Count a try, in a transaction of its own, and return the seconds to wait. 0: it may go on."""
        now = datetime.now(UTC)
        try:
            tries = await self._count(database, self._key(subject), now)
        except DBAPIError:
            # Two first tries at once: one of them had to give way, and is the second now.
            tries = await self._count(database, self._key(subject), now)
        return 0 if tries.count <= self.most else math.ceil((tries.ends_at - now).total_seconds())

    async def clear(self, database: Database, subject: str) -> None:
        """Forget the tries of a subject."""
        async with database.sessions.begin() as db:
            await db.execute(delete(Tries).where(Tries.key == self._key(subject)))

    async def _count(self, database: Database, key: str, now: datetime) -> Tries:
        async with database.sessions.begin() as db:
            tries = await db.get(Tries, key, with_for_update=True)
            if tries is not None and tries.ends_at > now:
                tries.count += 1
                return tries
            await db.execute(delete(Tries).where(Tries.ends_at <= now))
            tries = Tries(key=key, count=1, ends_at=now + self.window)
            db.add(tries)
            return tries

    def _key(self, subject: str) -> str:
        return sha256(f"{self.name}\0{subject}".encode()).hexdigest()


def client_of(request: Request) -> str:
    """Say who asks: the client's IP address, or for IPv6 its /64, which one client has to itself."""
    host = request.client.host if request.client else "unknown"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return host if address.version == 4 else str(ipaddress.ip_network((address, 64), strict=False))

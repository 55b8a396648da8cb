"""How often something may be tried, counted in the database so that it holds over all instances."""

from __future__ import annotations

import ipaddress
import math
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from fastapi import Request
from sqlalchemy import delete
from sqlalchemy.exc import IntegrityError

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
        """Count a try, in transactions of its own, and return the seconds to wait. 0: it may go on."""
        key, now = self._key(subject), datetime.now(UTC)
        while (tries := await self._count(database, key, now)) is None:
            await self._begin_window(database, key, now)
        return 0 if tries.count <= self.most else math.ceil((tries.ends_at - now).total_seconds())

    async def clear(self, database: Database, subject: str) -> None:
        """Forget the tries of a subject."""
        async with database.sessions.begin() as db:
            await db.execute(delete(Tries).where(Tries.key == self._key(subject)))

    # One lock in each transaction: visitors who come at once wait for each other, and never in a circle.

    async def _count(self, database: Database, key: str, now: datetime) -> Tries | None:
        """Count a try. None: no window is open."""
        async with database.sessions.begin() as db:
            tries = await db.get(Tries, key, with_for_update=True)
            if tries is None or tries.ends_at <= now:
                return None
            tries.count += 1
            return tries

    async def _begin_window(self, database: Database, key: str, now: datetime) -> None:
        """Open a window, unless another instance just has, and drop those that are over."""
        async with database.sessions.begin() as db:
            await db.execute(delete(Tries).where(Tries.ends_at <= now))
        with suppress(IntegrityError):
            async with database.sessions.begin() as db:
                db.add(Tries(key=key, count=0, ends_at=now + self.window))

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

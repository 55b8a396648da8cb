"""Being told of what other processes push: a channel, and a connection that does nothing but listen to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from fastqueue.errors import StoreUnavailable
from fastqueue.stores._server_wakes import ServerWakes, log
from fastqueue.stores.redis._access import Access

__all__ = ["RedisWakes"]

LOOKS_AFTER, HEARS_WITHIN = 30.0, 2.0
"""Seconds of silence after which a listener asks whether the server is still there, and that it has to answer."""


class RedisWakes(ServerWakes):
    """Notices by PUBLISH; a push sends its own, from the script that keeps the jobs."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def tell(self) -> None:
        try:
            await self._access.call("PUBLISH", self._access.channel, "")
        except StoreUnavailable as error:
            log.debug("a notice was not sent: %s", error)

    async def _hear(self, wake: Callable[[], None]) -> NoReturn:
        from redis.exceptions import RedisError

        client = self._access.listener()
        try:
            async with client.pubsub() as ear:
                await ear.subscribe(self._access.channel)
                asked = False
                while True:
                    heard = await ear.get_message(timeout=HEARS_WITHIN if asked else LOOKS_AFTER)
                    if heard is not None:
                        # The first is the server's word that it will send the rest.
                        self.up, asked = True, False
                        if heard["type"] != "pong":
                            wake()
                    elif asked:
                        raise ConnectionError("the server no longer answers on the line for notices")
                    else:
                        await ear.ping()
                        asked = True
        except (RedisError, OSError) as error:
            raise self._access.unavailable(error) from error
        finally:
            await client.aclose()

"""Being told of what other processes push: a channel, and a connection that does nothing but listen to it."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import NoReturn

from fastqueue.errors import StoreUnavailable
from fastqueue.store import Wakes
from fastqueue.stores.redis._access import Access

__all__ = ["RedisWakes"]

log = logging.getLogger("fastqueue")

FIRST_WAIT, LONGEST_WAIT, STEADY_AFTER = 0.1, 1.0, 10.0
"""Seconds before a listener connects again: at first, at most, and how long a line must last to begin anew."""

LOOKS_AFTER, HEARS_WITHIN = 30.0, 2.0
"""Seconds of silence after which a listener asks whether the server is still there, and that it has to answer."""


class RedisWakes(Wakes):
    """Notices by PUBLISH; a push sends its own, from the script that keeps the jobs."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def listen(self, wake: Callable[[], None]) -> None:
        loop, wait = asyncio.get_running_loop(), FIRST_WAIT
        while True:
            began = loop.time()
            try:
                await self._hear(wake)
            except StoreUnavailable as error:
                log.debug("the line for notices is down: %s", error)
            finally:
                self.up = False
            if loop.time() - began > STEADY_AFTER:
                wait = FIRST_WAIT
            await asyncio.sleep(wait * random.uniform(0.5, 1))
            wait = min(2 * wait, LONGEST_WAIT)

    async def tell(self) -> None:
        try:
            await self._access.call("PUBLISH", self._access.channel, "")
        except StoreUnavailable as error:
            log.debug("a notice was not sent: %s", error)

    async def _hear(self, wake: Callable[[], None]) -> NoReturn:
        """Listen until the line is lost."""
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

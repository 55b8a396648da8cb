"""Notices over a line to a server, which is made again whenever it is lost."""

from __future__ import annotations

import asyncio
import logging
import random
from abc import abstractmethod
from collections.abc import Callable

from fastqueue.errors import StoreUnavailable
from fastqueue.store import Wakes

__all__ = ["ServerWakes", "log"]

log = logging.getLogger("fastqueue")

FIRST_WAIT, LONGEST_WAIT, STEADY_AFTER = 0.1, 1.0, 10.0
"""Seconds before a listener connects again: at first, at most, and how long a line must last to begin anew."""


class ServerWakes(Wakes):
    """Listens on one line after the other."""

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

    @abstractmethod
    async def _hear(self, wake: Callable[[], None]) -> None:
        """Connect and listen until the line is lost.

        Raises:
            StoreUnavailable: it was, or there was none to be had.
        """

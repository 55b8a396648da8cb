"""Being told of what other processes push: LISTEN on a connection that does nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NoReturn
from uuid import uuid4

from fastqueue.errors import StoreUnavailable
from fastqueue.stores._server_wakes import ServerWakes, log
from fastqueue.stores.postgres._access import Access

__all__ = ["PostgresWakes"]

HEARS_WITHIN = 2.0
"""Seconds that a listener gives its own first notice to come back."""

LOOKS_AFTER = 30.0
"""Seconds of silence after which a listener asks whether the server is still there."""

APART = 0.005
"""Seconds between two notices sent on their own."""

PROBE = "probe "


class PostgresWakes(ServerWakes):
    """Notices by NOTIFY, on a channel of these tables alone."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._deaf = False
        self._telling = False
        self._again = False
        self._told = 0.0

    async def listen(self, wake: Callable[[], None]) -> None:
        if self._access.here.ears is None:
            self._warn("behind a pooler nothing can be listened for")
            await asyncio.get_running_loop().create_future()
            return
        await super().listen(wake)

    async def tell(self) -> None:
        if self._telling:
            # The driver takes one statement at a time; this notice goes out after the one that is on its way.
            self._again = True
            return
        self._telling, self._again = True, True
        loop = asyncio.get_running_loop()
        try:
            while self._again:
                await asyncio.sleep(max(0.0, self._told + APART - loop.time()))
                self._again = False
                await self._notify("")
                self._told = loop.time()
        except StoreUnavailable as error:
            log.debug("a notice was not sent: %s", error)
        finally:
            self._telling = False

    async def hears(self) -> bool:
        """Whether a notice that is sent now comes back."""
        ears, probe, heard = self._access.here.ears, PROBE + uuid4().hex, asyncio.Event()
        if ears is None:
            return False

        def notice(connection: object, pid: int, channel: str, tag: object) -> None:
            if tag == probe:
                heard.set()

        async with ears.borrow() as connection:
            await self._access.identify()
            await connection.add_listener(self._access.channel, notice)
            await self._notify(probe)
            came_back = await _within(HEARS_WITHIN, heard)
            await connection.remove_listener(self._access.channel, notice)
            return came_back

    async def _hear(self, wake: Callable[[], None]) -> NoReturn:
        ears = self._access.here.ears
        assert ears is not None
        probe = PROBE + uuid4().hex
        lost, heard = asyncio.Event(), asyncio.Event()

        def cut(connection: object) -> None:
            lost.set()

        def notice(connection: object, pid: int, channel: str, tag: object) -> None:
            self.up = True
            if tag == probe:
                heard.set()
            elif not str(tag).startswith(PROBE):
                wake()

        async with ears.borrow() as connection:
            connection.add_termination_listener(cut)
            await self._access.identify()
            await connection.add_listener(self._access.channel, notice)
            wake()
            await self._notify(probe)
            if not await _within(HEARS_WITHIN, heard) and not lost.is_set():
                self._warn(f"a notice sent to itself did not come back within {HEARS_WITHIN:.0f} s")
            while not await _within(LOOKS_AFTER, lost):
                await connection.execute("SELECT 1", timeout=HEARS_WITHIN)
            raise ConnectionError("the line for notices was cut")

    async def _notify(self, tag: str) -> None:
        notices = self._access.here.notices
        await self._access.identify()
        await self._access.do_on(notices, "wakes.notice", channel=self._access.channel, tag=tag)

    def _warn(self, what: str) -> None:
        if not self._deaf:
            self._deaf = True
            log.warning(
                "PostgreSQL at %s: %s, so jobs that other processes push are found by polling; "
                "give the store listen_dsn, the address of the server itself",
                self._access.address.shown,
                what,
            )


async def _within(seconds: float, event: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False

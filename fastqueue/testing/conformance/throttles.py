"""Clauses of throttles: tries are counted in fixed windows."""

from __future__ import annotations

from fastqueue.store import Hits
from fastqueue.testing.conformance.clause import clause
from fastqueue.testing.conformance.stage import MINUTE, SECOND, T0, Stage

__all__ = ["ThrottleClauses"]


class ThrottleClauses:
    @clause("throttles")
    async def test_t1_a_window_ends_when_it_was_to_end(self, on: Stage) -> None:
        """T1: a window begins with its first try and ends `window_ms` later whatever comes meanwhile."""
        for tries, seconds in enumerate((0, 10, 59), 1):
            hits = await on.throttles.hit("mail", now=T0 + seconds * SECOND, window_ms=MINUTE)
            assert hits == Hits(tries, T0 + MINUTE)

    @clause("throttles")
    async def test_t2_a_try_at_the_very_end_begins_a_new_window(self, on: Stage) -> None:
        """T2: a try at the very end begins a new one, of the length that it asks for."""
        assert await on.throttles.hit("mail", now=T0, window_ms=MINUTE) == Hits(1, T0 + MINUTE)
        assert await on.throttles.hit("mail", now=T0 + MINUTE - 1, window_ms=MINUTE) == Hits(2, T0 + MINUTE)
        assert await on.throttles.hit("mail", now=T0 + MINUTE, window_ms=SECOND) == Hits(1, T0 + MINUTE + SECOND)

    @clause("throttles")
    async def test_t3_keys_are_apart(self, on: Stage) -> None:
        """T3: keys are apart, letter by letter."""
        for key in ("mail", "Mail", "mail ", "m\u00e4il", "it's"):
            assert await on.throttles.hit(key, now=T0, window_ms=MINUTE) == Hits(1, T0 + MINUTE)

    @clause("throttles")
    async def test_t1_a_look_counts_no_try(self, on: Stage) -> None:
        """T1: the running window's count without counting a try; None: no window runs."""
        assert await on.throttles.tries("mail", now=T0) is None
        await on.throttles.hit("mail", now=T0, window_ms=MINUTE)
        for _ in range(2):
            assert await on.throttles.tries("mail", now=T0 + MINUTE - 1) == Hits(1, T0 + MINUTE)
        assert await on.throttles.tries("mail", now=T0 + MINUTE) is None

    @clause("throttles")
    async def test_t1_a_cleared_key_begins_anew(self, on: Stage) -> None:
        """T1: clear forgets the key's window, and no other's."""
        for key in ("mail", "sms"):
            await on.throttles.hit(key, now=T0, window_ms=MINUTE)
        await on.throttles.clear("mail")
        await on.throttles.clear("nothing")
        assert await on.throttles.tries("mail", now=T0) is None
        assert await on.throttles.hit("mail", now=T0 + SECOND, window_ms=MINUTE) == Hits(1, T0 + SECOND + MINUTE)
        assert await on.throttles.tries("sms", now=T0) == Hits(1, T0 + MINUTE)

    @clause("throttles")
    async def test_x4_prune_keeps_the_windows_that_run(self, on: Stage) -> None:
        """X4: throttles whose window is over are forgotten; the others count on."""
        await on.throttles.hit("mail", now=T0, window_ms=SECOND)
        await on.throttles.hit("sms", now=T0, window_ms=MINUTE)
        assert await on.store.prune(T0 + SECOND, failed_before=T0) == 0
        assert await on.throttles.tries("mail", now=T0) is None
        assert await on.throttles.hit("sms", now=T0 + SECOND, window_ms=MINUTE) == Hits(2, T0 + MINUTE)

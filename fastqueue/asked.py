"""What the options of a kind ask of the store that is to keep its jobs."""

from __future__ import annotations

from fastqueue.errors import Unsupported
from fastqueue.limits import Throttle
from fastqueue.options import Options
from fastqueue.store import Keep, Store

__all__ = ["refuse_unkept", "unkept"]


def refuse_unkept(store: Store, kind: str, options: Options) -> None:
    """Refuse options of a kind that a store could not keep.

    Raises:
        Unsupported: the store does not keep what one of them needs; the message names it.
    """
    unique = options.unique
    asked: list[tuple[Keep, str, bool]] = [
        (Keep.KEYS, "unique=...", unique is not None),
        (Keep.LATEST, "Unique(latest=True)", unique is not None and unique.latest),
        (Keep.ONE_AT_A_TIME, "Unique(one_at_a_time=True)", unique is not None and unique.one_at_a_time),
        (Keep.AT_ONCE, "at_once=...", options.at_once > 0),
    ]
    for keep, option, is_asked in asked:
        if is_asked and keep not in store.keeps:
            raise unkept(store, kind, option, keep.value)
    if options.rate is not None and store.holds is None:
        raise unkept(store, kind, "rate=...", "holding a kind back")
    if isinstance(options.rate, Throttle) and options.rate.store is None and store.throttles is None:
        raise unkept(store, kind, "rate=Throttle(...)", "counting tries")


def unkept(store: Store, kind: str, option: str, need: str) -> Unsupported:
    """The refusal of an option of a kind that needs what a store does not keep."""
    return Unsupported(
        f"kind {kind!r}: the {store.name} store does not keep {need}, which {option} needs: leave it out"
    )

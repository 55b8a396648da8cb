"""For tests of apps that use fastqueue, and for authors of stores.

- `FakeClock`: a clock moved by hand.
- `StoreContract`: the conformance kit as a base class of pytest tests; needs pytest.
- `exercise`: the conformance kit without pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastqueue.testing.clock import FakeClock

if TYPE_CHECKING:
    from fastqueue.testing.conformance.contract import StoreContract
    from fastqueue.testing.conformance.report import Report, exercise

__all__ = ["FakeClock", "Report", "StoreContract", "exercise"]


def __getattr__(name: str) -> Any:
    if name == "StoreContract":
        from fastqueue.testing.conformance.contract import StoreContract

        return StoreContract
    if name in ("Report", "exercise"):
        from fastqueue.testing.conformance import report

        return getattr(report, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

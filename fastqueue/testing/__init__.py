"""For tests of apps that use fastqueue, and for authors of stores.

- `FakeQueue`: a queue that remembers what was pushed, and runs it when the test says so.
- `FakeClock`: a clock moved by hand.
- `StoreContract`: the conformance kit as a base class of pytest tests; needs pytest.
- `exercise`: the conformance kit without pytest.

How to use the kit is told in `fastqueue.testing.conformance`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fastqueue.testing.clock import FakeClock
from fastqueue.testing.fake import FakeQueue

if TYPE_CHECKING:
    from fastqueue.testing.conformance.contract import StoreContract
    from fastqueue.testing.conformance.report import Fresh, Report, exercise
    from fastqueue.testing.conformance.stage import Begin, MakeStore

__all__ = ["Begin", "FakeClock", "FakeQueue", "Fresh", "MakeStore", "Report", "StoreContract", "exercise"]

_KIT = "fastqueue.testing.conformance"
_MODULES = {
    "Begin": "stage",
    "Fresh": "report",
    "MakeStore": "stage",
    "Report": "report",
    "StoreContract": "contract",
    "exercise": "report",
}

if "pytest" in sys.modules:
    # Before the kit's first import, so that a check that fails shows its values as the app's own tests do
    sys.modules["pytest"].register_assert_rewrite(_KIT)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{_KIT}.{_MODULES[name]}"), name)

from __future__ import annotations

from types import ModuleType

import fastqueue


def test_what_the_root_exports_is_what_is_visible_there() -> None:
    visible = {
        name
        for name, value in vars(fastqueue).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert visible - {"annotations"} == set(fastqueue.__all__) - {"__version__"}


def test_the_exports_are_sorted_and_named_once() -> None:
    assert fastqueue.__all__ == sorted(set(fastqueue.__all__))

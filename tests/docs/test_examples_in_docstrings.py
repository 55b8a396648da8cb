"""The examples in the package's docstrings run."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import fastqueue

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(fastqueue.__path__, "fastqueue.")
    if not module.name.endswith("__main__")  # importing it runs the command
)


@pytest.mark.parametrize("name", ["fastqueue", *MODULES])
def test_the_examples_in_the_docstrings_of_a_module_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS).failed == 0

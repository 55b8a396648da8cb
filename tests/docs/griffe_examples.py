"""For the reference: shows the examples of docstrings as code. griffe knows them by the plural only."""

from __future__ import annotations

from typing import Any

import griffe


class Examples(griffe.Extension):
    """Reads `Example:` as `Examples:`."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for each object that was read."""
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("Example:\n", "Examples:\n")

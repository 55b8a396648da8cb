"""A queue for commands that are written wrongly, and never get to it."""

from __future__ import annotations

from fastqueue import Queue

queue = Queue("memory://")

"""Log lines that say which request they belong to, the lines of the jobs it pushed included."""

from __future__ import annotations

import logging

from fastqueue.starlette import request_id

__all__ = ["set_up"]

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s request_id=%(request_id)s"


class _RequestID(logging.Filter):
    """Gives a record the ID of the request, or of the request that pushed the job, in which it was logged."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "request_id"):
            record.request_id = request_id() or "-"
        return True


def set_up() -> None:
    """Write log lines to stderr, uvicorn's too. Where logging has been set up already, it is left as it is."""
    if logging.getLogger().handlers:
        return
    handler = logging.StreamHandler()
    handler.addFilter(_RequestID())
    logging.basicConfig(level=logging.INFO, format=_FORMAT, handlers=[handler])
    for name in ("uvicorn", "uvicorn.access"):
        theirs = logging.getLogger(name)
        theirs.handlers.clear()
        theirs.propagate = True

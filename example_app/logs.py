"""Log lines that say which request they belong to, the lines of the jobs it pushed included."""

from __future__ import annotations

import logging

from fastqueue.starlette import request_id

__all__ = ["set_up"]

_FORMAT = "%(asctime)s %(levelname)s [%(request_id)s] %(name)s: %(message)s"


class _RequestID(logging.Filter):
    """Gives a record the ID of the request in which it was logged, or of the one that pushed the job it is about."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = getattr(record, "fastqueue.request_id", None) or request_id() or "-"
        return True


class _WithoutQuery(logging.Filter):
    """Leaves the query out of uvicorn's lines: in a link that verifies an address, it is the secret."""

    def filter(self, record: logging.LogRecord) -> bool:
        match record.args:
            case (client, method, str(path), version, status) if record.name == "uvicorn.access":
                record.args = (client, method, path.partition("?")[0], version, status)
            case _:
                pass
        return True


def set_up() -> None:
    """Write log lines to stderr, uvicorn's too. Where logging has been set up already, it is left as it is."""
    if logging.getLogger().handlers:
        return
    handler = logging.StreamHandler()
    handler.addFilter(_RequestID())
    handler.addFilter(_WithoutQuery())
    logging.basicConfig(level=logging.INFO, format=_FORMAT, handlers=[handler])
    for name in ("uvicorn", "uvicorn.access"):
        theirs = logging.getLogger(name)
        theirs.handlers.clear()
        theirs.propagate = True

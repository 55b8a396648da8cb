"""How many jobs a process runs, and of which queues, from its environment: read by the command, and by apps that like.

Example:
    ```python
    settings = QueueSettings.from_environ()
    queue = Queue("sqlite:///app.db", workers=settings.workers or 4, queues=settings.queues, grace=settings.grace)
    app = FastAPI(lifespan=lifespan(queue, run=settings.in_serve))
    ```
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from fastqueue.codec import check_name
from fastqueue.errors import OptionError
from fastqueue.settings import as_seconds

__all__ = ["QueueSettings"]

T = TypeVar("T")

_SWITCH = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """What the environment says of a process's workers.

    Attributes:
        workers: QUEUE_CONCURRENCY, or QUEUE_WORKERS. How many jobs run at once. None: neither says, or 0.
        in_serve: False when QUEUE_IN_SERVE is false or QUEUE_WORKERS is 0: the server only pushes, and its jobs run
            elsewhere. True when neither is set.
        queues: QUEUE_NAMES, with commas between them. The queues that are served, the first before the second. None:
            not set.
        grace: SHUTDOWN_TIMEOUT. Seconds that running jobs may go on when the process is stopped; 0: each job's own
            time limit. None: not set.

    Example:
        >>> QueueSettings.from_environ({"QUEUE_WORKERS": "0"}).in_serve
        False
    """

    workers: int | None = None
    in_serve: bool = True
    queues: tuple[str, ...] | None = None
    grace: float | None = None

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] = os.environ) -> QueueSettings:
        """Read the settings from environment variables; one that is empty counts as not set.

        Args:
            environ: The variables. Default: the process's own.

        Raises:
            OptionError: a value cannot be; the message names the variable, the value and the remedy.

        Example:
            >>> QueueSettings.from_environ({"QUEUE_CONCURRENCY": "8", "QUEUE_NAMES": "high,default"})
            QueueSettings(workers=8, in_serve=True, queues=('high', 'default'), grace=None)
        """

        def read(name: str, parse: Callable[[str], T]) -> T | None:
            text = environ.get(name, "").strip()
            try:
                return parse(text) if text else None
            except ValueError as error:
                raise OptionError(f"{name} cannot be {text!r}: {error}") from None

        workers, concurrency = read("QUEUE_WORKERS", _count), read("QUEUE_CONCURRENCY", _count)
        if workers and concurrency and workers != concurrency:
            raise OptionError(
                f"QUEUE_WORKERS is {workers} and QUEUE_CONCURRENCY is {concurrency}, and they mean the same: "
                "set one of them"
            )
        return cls(
            workers=concurrency or workers or None,
            in_serve=read("QUEUE_IN_SERVE", _switch) is not False and 0 not in (workers, concurrency),
            queues=read("QUEUE_NAMES", _names),
            grace=read("SHUTDOWN_TIMEOUT", _seconds),
        )


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError("give a whole number, 0 or more; 0 makes an instance that only pushes")
    return int(text)


def _switch(text: str) -> bool:
    if text.lower() not in _SWITCH:
        raise ValueError("give true or false")
    return _SWITCH[text.lower()]


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise ValueError("give names of queues, each once, with commas between them, such as high,default")
    return tuple(check_name("queue", name) for name in names)


def _seconds(text: str) -> float:
    try:
        return as_seconds("seconds", float(text))
    except ValueError:
        raise ValueError("give seconds, 0 or more, such as 10 or 2.5") from None

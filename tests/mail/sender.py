"""A process that sends the mail of a store: run as `python -m tests.mail.sender STORE SMTP_URL KEY`."""

from __future__ import annotations

import asyncio
import sys

from fastqueue import Defaults, Queue, constant
from fastqueue.mail import Mailer

__all__ = ["queue_on"]


def queue_on(store: str, url: str, key: str) -> tuple[Queue, Mailer]:
    """A queue that tries again at once, whose jobs come back soon after their process has died."""
    short = Defaults(backoff=constant(0), margin=0.5, hold_at_most=0.5)
    queue = Queue(store, poll=0.1, grace=0.1, defaults=short)
    mailer = Mailer(url, sender="shop@example.com", keys=[key], timeout=10)
    queue.include(mailer.kinds)
    return queue, mailer


if __name__ == "__main__":
    asyncio.run(queue_on(*sys.argv[1:])[0].run())

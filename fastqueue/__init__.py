"""Background jobs for FastAPI and Starlette, kept in the database the app already has."""

from fastqueue.backoff import Backoff, constant, exponential, quartic
from fastqueue.carriers import Carrier, CarryVar
from fastqueue.errors import FastQueueError, Permanent
from fastqueue.health import Health
from fastqueue.job import Pushed, StoredJob
from fastqueue.kind import Kind, Run
from fastqueue.kinds import Kinds
from fastqueue.limits import Limiter, Throttle
from fastqueue.options import Defaults
from fastqueue.outcome import Outcome, Ran
from fastqueue.pushing import Pushing
from fastqueue.queue import Queue
from fastqueue.schedule import Schedule, cron, every
from fastqueue.store import Store
from fastqueue.unique import Unique

__version__ = "0.1.0"

__all__ = [
    "Backoff",
    "Carrier",
    "CarryVar",
    "Defaults",
    "FastQueueError",
    "Health",
    "Kind",
    "Kinds",
    "Limiter",
    "Outcome",
    "Permanent",
    "Pushed",
    "Pushing",
    "Queue",
    "Ran",
    "Run",
    "Schedule",
    "Store",
    "StoredJob",
    "Throttle",
    "Unique",
    "constant",
    "cron",
    "every",
    "exponential",
    "quartic",
]

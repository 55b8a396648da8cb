"""A queue's numbers for Prometheus: what waits in the store, and how the runs of this process went.

Example:
    ```python
    queue = Queue("sqlite:///app.db")
    app = FastAPI(lifespan=lifespan(queue))
    app.add_route("/metrics", metrics(queue))
    ```
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from typing import Any

from fastqueue.codec import error_text
from fastqueue.errors import MissingDriver
from fastqueue.home import on_a_loop
from fastqueue.outcome import Outcome, Ran
from fastqueue.queue import Queue
from fastqueue.settings import Seconds, as_seconds
from fastqueue.store import Count

try:
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, Metric, make_asgi_app
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.registry import Collector
except ModuleNotFoundError as error:
    raise MissingDriver(
        f'fastqueue.prometheus needs {error.name}: pip install "fastqueue[prometheus]"', name=error.name
    ) from error

__all__ = ["QueueMetrics", "metrics"]

log = logging.getLogger("fastqueue")

_LABELS = ("queue", "kind")
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)

_STATES = {
    "waiting": "Jobs that are due and wait for a worker.",
    "delayed": "Jobs that are due later.",
    "running": "Jobs that a worker holds.",
    "failed": "Jobs that failed for good and are kept.",
}


class QueueMetrics(Collector):
    """Counts a queue's runs from now on, and asks its store for what waits when it is collected.

    What the queue is observed by already goes on being told. Gauges come from the store, so that every process
    answers the same for them; counters and histograms are of this process alone.

    Args:
        queue: The queue.
        registry: Where it is registered. Default: prometheus_client's own.
        fresh_for: How long an answer of the store is given again, in seconds: it reads the whole table. Default 5 s.

    Raises:
        OptionError: `fresh_for` is no duration.
        ValueError: the registry has the metrics of another queue; give each a registry of its own.

    Example:
        >>> from prometheus_client import CollectorRegistry
        >>> numbers = QueueMetrics(Queue("memory://"), registry=CollectorRegistry())
    """

    def __init__(self, queue: Queue, *, registry: CollectorRegistry = REGISTRY, fresh_for: Seconds = 5) -> None:
        self._queue = queue
        self._fresh_for = as_seconds("fresh_for", fresh_for)
        self._asked_at: float | None = None
        self._asking = asyncio.Lock()
        self._now, self._counts, self._up = 0, list[Count](), False
        self._runs = Counter("fastqueue_runs", "Runs that ended.", (*_LABELS, "outcome"), registry=registry)
        self._took = Histogram(
            "fastqueue_run_seconds", "Seconds that a handler ran.", _LABELS, buckets=_BUCKETS, registry=registry
        )
        self._waited = Histogram(
            "fastqueue_wait_seconds", "Seconds from due to start.", _LABELS, buckets=_BUCKETS, registry=registry
        )
        registry.register(self)
        self._observe, queue.observe = queue.observe, self.observe

    def observe(self, ran: Ran) -> None:
        """Count a run."""
        self._runs.labels(ran.queue, ran.kind, ran.outcome.value).inc()
        if ran.outcome is not Outcome.HELD_BACK:
            self._took.labels(ran.queue, ran.kind).observe(ran.took)
            self._waited.labels(ran.queue, ran.kind).observe(ran.waited)
        if self._observe is not None:
            self._observe(ran)

    async def refresh(self) -> None:
        """Ask the store for what is to be collected next, unless its last answer is fresh."""
        async with self._asking:
            clock = asyncio.get_running_loop().time
            if self._asked_at is not None and clock() - self._asked_at < self._fresh_for:
                return
            try:
                await self._queue.ready()
                self._now = self._queue.clock.now()
                self._counts, self._up = await self._queue.store.counts(self._now), True
            except Exception as error:
                log.warning("the store's numbers could not be read: %s", error_text(error))
                self._counts, self._up = [], False
            self._asked_at = clock()

    def describe(self) -> Iterable[Metric]:
        """The gauges by name; the store is not asked."""
        return [*self._gauges([]), self._store_up()]

    def collect(self) -> Iterator[Metric]:
        """The gauges. On a thread of its own, as of `start_http_server`, the store is asked first."""
        if not on_a_loop():
            self._queue.home.from_outside(self.refresh, "metrics")
        yield self._store_up()
        yield from self._gauges(self._counts)

    def _store_up(self) -> Metric:
        return GaugeMetricFamily("fastqueue_store_up", "Whether the store answered.", value=float(self._up))

    def _gauges(self, counts: list[Count]) -> Iterator[Metric]:
        for state, text in _STATES.items():
            family = GaugeMetricFamily(f"fastqueue_jobs_{state}", text, labels=_LABELS)
            for count in counts:
                family.add_metric([count.queue, count.kind], getattr(count, state))
            yield family
        family = GaugeMetricFamily(
            "fastqueue_oldest_seconds", "Seconds that the oldest waiting job has been due.", labels=_LABELS
        )
        for count in counts:
            if count.oldest is not None:
                family.add_metric([count.queue, count.kind], max(self._now - count.oldest, 0) / 1000)
        yield family


def metrics(queue: Queue, *, registry: CollectorRegistry | None = None, fresh_for: Seconds = 5) -> Any:
    """A route that Prometheus scrapes: the queue's numbers, and what else is in the registry.

    They tell the names of kinds and queues, so keep the route from the public.

    Args:
        queue: The queue.
        registry: Whose metrics are shown. Default: prometheus_client's own, with those of the process.
        fresh_for: As for `QueueMetrics`.

    Returns:
        An ASGI app, for `app.add_route`, `Route` and `Mount`.

    Example:
        >>> from prometheus_client import CollectorRegistry
        >>> from starlette.applications import Starlette
        >>> app = Starlette()
        >>> app.add_route("/metrics", metrics(Queue("memory://"), registry=CollectorRegistry()))
    """
    registry = REGISTRY if registry is None else registry
    return _Route(QueueMetrics(queue, registry=registry, fresh_for=fresh_for), make_asgi_app(registry))


class _Route:
    """Asks the store, and then shows the registry."""

    def __init__(self, numbers: QueueMetrics, shown: Any) -> None:
        self._numbers = numbers
        self._shown = shown

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._numbers.refresh()
        await self._shown(scope, receive, send)

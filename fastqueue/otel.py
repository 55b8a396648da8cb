"""OpenTelemetry: the trace of a push goes on in the run of its job, and both are measured.

Names are those of OpenTelemetry's conventions for messaging, where a kind is the destination. Only its API is needed;
without an SDK nothing is recorded.

Example:
    ```python
    queue = Queue("sqlite:///app.db", carry=[CarryTrace()], observe=MeasureRuns())
    ```
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from time import perf_counter

from fastqueue import __version__
from fastqueue.errors import MissingDriver
from fastqueue.outcome import Outcome, Ran

try:
    from opentelemetry import context, propagate, trace
    from opentelemetry.metrics import Histogram, Meter, MeterProvider, get_meter
    from opentelemetry.trace import Link, SpanKind, Status, StatusCode
except ImportError as error:
    raise MissingDriver(
        'fastqueue.otel needs opentelemetry-api: pip install "fastqueue[otel]"', name="opentelemetry"
    ) from error

__all__ = ["CarryTrace", "MeasureRuns"]

CARRIED_AT_MOST = 2048
"""Characters. Baggage comes from whoever sends a request: one that brings much must not make every push fail."""

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)


class CarryTrace:
    """Traces each push and each run, and counts the jobs pushed.

    A push is a span `send {kind}` in the trace of its request. A run is a span `process {kind}`, the current one for
    its handler, with a link to the push. It begins a trace of its own, since a job may run days later, and many jobs
    may come from one request. What else the app's global propagator takes along, such as baggage, is there in the run
    too; of more than 2048 characters only the shortest entries.

    Each attempt is a span, with the status ERROR if it failed; so is the call of an `on_fail`, and a run that its
    kind's rate holds back has a short one.

    Args:
        parent: Have the run go on in the trace of the push, as a child of its span. Default: False.
        tracer_provider, meter_provider: Whom to tell. Default: the global ones.

    Example:
        >>> from fastqueue import Queue
        >>> queue = Queue("memory://", carry=[CarryTrace()])
    """

    def __init__(
        self,
        *,
        parent: bool = False,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self._parent = parent
        self._tracer = trace.get_tracer("fastqueue", __version__, tracer_provider)
        meter = get_meter("fastqueue", __version__, meter_provider)
        self._sent = meter.create_counter(
            "messaging.client.sent.messages", "{message}", "Number of jobs that a push attempted to keep."
        )
        self._took = _seconds(meter, "messaging.client.operation.duration", "Duration of a push.")

    @contextmanager
    def pushing(self, kind: str, queue: str, carried: dict[str, str], count: int, /) -> Generator[None]:
        """Trace a push, and take its trace along."""
        labels = _labels("send", kind, queue)
        batch = {"messaging.batch.message_count": count} if count != 1 else {}
        began = perf_counter()
        try:
            with self._span("send", kind, SpanKind.PRODUCER, labels | batch):
                found: dict[str, str] = {}
                propagate.inject(found)
                carried.update(_what_fits(found))
                yield
        except BaseException as error:
            labels |= _error(error)
            raise
        finally:
            self._sent.add(count, labels)
            self._took.record(perf_counter() - began, labels)

    @contextmanager
    def running(self, kind: str, queue: str, carried: Mapping[str, str], attempt: int, /) -> Generator[None]:
        """Trace a run, and link it to its push."""
        came = propagate.extract(carried)
        origin = trace.get_current_span(came).get_span_context()
        links = [Link(origin)] if origin.is_valid else []
        if not self._parent:
            came = trace.set_span_in_context(trace.INVALID_SPAN, came)
        before = context.attach(came)
        try:
            labels = _labels("process", kind, queue) | {"fastqueue.attempt": attempt}
            with self._span("process", kind, SpanKind.CONSUMER, labels, links):
                yield
        finally:
            context.detach(before)

    @contextmanager
    def _span(
        self, verb: str, kind: str, role: SpanKind, labels: Mapping[str, str | int], links: list[Link] | None = None
    ) -> Generator[None]:
        with self._tracer.start_as_current_span(f"{verb} {kind}", kind=role, attributes=labels, links=links) as span:
            try:
                yield
            except BaseException as error:
                # A run that is cancelled has not succeeded, though OpenTelemetry does not count that as an error.
                span.set_attributes(_error(error))
                span.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
                raise


class MeasureRuns:
    """Counts runs and measures how long they took and waited, by kind, queue, outcome and error; for `observe`.

    A run that was held back by its kind's rate is none.

    Args:
        meter_provider: Whom to tell. Default: the global one.

    Example:
        >>> from fastqueue import Queue
        >>> queue = Queue("memory://", observe=MeasureRuns())
    """

    def __init__(self, *, meter_provider: MeterProvider | None = None) -> None:
        meter = get_meter("fastqueue", __version__, meter_provider)
        self._runs = meter.create_counter("messaging.client.consumed.messages", "{message}", "Number of runs.")
        self._took = _seconds(meter, "messaging.process.duration", "Duration of a handler's run.")
        self._waited = _seconds(meter, "fastqueue.wait.duration", "From the moment a job was due to its run.")

    def __call__(self, ran: Ran) -> None:
        """Measure a run."""
        if ran.outcome is Outcome.HELD_BACK:
            return
        labels = _labels("process", ran.kind, ran.queue) | {"fastqueue.outcome": ran.outcome.value}
        if ran.error is not None:
            labels |= _error(ran.error)
        self._runs.add(1, labels)
        self._took.record(ran.took, labels)
        self._waited.record(ran.waited, labels)


def _labels(operation: str, kind: str, queue: str) -> dict[str, str | int]:
    return {
        "messaging.system": "fastqueue",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": kind,
        "fastqueue.queue": queue,
    }


def _error(error: BaseException) -> dict[str, str | int]:
    sort = type(error)
    return {
        "error.type": sort.__qualname__ if sort.__module__ == "builtins" else f"{sort.__module__}.{sort.__qualname__}"
    }


def _what_fits(found: Mapping[str, str]) -> dict[str, str]:
    """The shortest entries, as many as a job may carry; a trace's own are among them."""
    kept: dict[str, str] = {}
    room = CARRIED_AT_MOST
    for name, value in sorted(found.items(), key=lambda entry: len(entry[1])):
        room -= len(name) + len(value)
        if room < 0:
            break
        kept[name] = value
    return kept


def _seconds(meter: Meter, name: str, description: str) -> Histogram:
    return meter.create_histogram(name, "s", description, explicit_bucket_boundaries_advisory=_SECONDS)

"""Traces and measures with OpenTelemetry's own SDK, which keeps them in memory here."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import pytest
from fastapi import FastAPI
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from starlette.testclient import TestClient

from fastqueue import Kind, Outcome, Permanent, Queue, Ran, constant, every
from fastqueue.carriers import MAX_CARRIED_BYTES
from fastqueue.errors import ValueRefused
from fastqueue.otel import CarryTrace, MeasureRuns
from fastqueue.starlette import lifespan
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import FakeClock
from fastqueue.worker.tick import Ticker


@dataclass
class Told:
    """What the SDK was told."""

    spans: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    metrics: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)

    def __post_init__(self) -> None:
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        self.meters = MeterProvider([self.metrics], shutdown_on_exit=False)

    def named(self, name: str) -> list[ReadableSpan]:
        """The spans of a name that have ended, in that order."""
        return [span for span in self.spans.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span

    def points(self, name: str) -> list[Any]:
        """The data points of a metric."""
        data = self.metrics.get_metrics_data()
        assert data
        return [
            point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def counted(self, name: str, *labels: str) -> dict[tuple[object, ...], float]:
        """What a counter counted, by some of its labels."""
        found: dict[tuple[object, ...], float] = {}
        for point in self.points(name):
            assert isinstance(point, NumberDataPoint)
            attributes: Mapping[str, object] = point.attributes or {}
            found[tuple(attributes.get(label) for label in labels)] = point.value
        return found


@pytest.fixture
def told() -> Told:
    return Told()


class App:
    """A traced queue with a kind that is told how its runs are to end."""

    def __init__(self, told: Told, *, parent: bool = False, attempts: int = 3) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore()
        self.ends: list[BaseException] = []
        self.ran: list[Ran] = []
        self.current: list[trace.SpanContext] = []
        self.baggage: list[object] = []
        carry = CarryTrace(parent=parent, tracer_provider=told.tracers, meter_provider=told.meters)
        measure = MeasureRuns(meter_provider=told.meters)

        def observe(ran: Ran) -> None:
            self.ran.append(ran)
            measure(ran)

        self.queue = Queue(self.store, clock=self.clock, carry=[carry], observe=observe)

        @self.queue.handle("mail", attempts=attempts, backoff=constant(0))
        async def mail(to: str) -> None:
            self.current.append(trace.get_current_span().get_span_context())
            self.baggage.append(baggage.get_baggage("tenant"))
            if self.ends:
                raise self.ends.pop(0)

        self.mail: Kind[str] = mail


def context_of(span: ReadableSpan) -> trace.SpanContext:
    found = span.get_span_context()
    assert found
    return found


async def test_a_run_begins_a_trace_of_its_own_and_links_to_its_push(told: Told) -> None:
    app = App(told)
    with told.tracers.get_tracer("app").start_as_current_span("request"):
        await app.mail.push("ada", queue="slow")
    await app.queue.drain()

    request, send, process = told.one("request"), told.one("send mail"), told.one("process mail")
    assert send.parent == context_of(request)
    assert process.parent is None
    assert context_of(process).trace_id != context_of(send).trace_id
    assert [(link.context.trace_id, link.context.span_id) for link in process.links] == [
        (context_of(send).trace_id, context_of(send).span_id)
    ]
    assert app.current == [context_of(process)]
    assert not trace.get_current_span().get_span_context().is_valid

    assert (send.kind, process.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    names = {
        "messaging.system": "fastqueue",
        "messaging.destination.name": "mail",
        "fastqueue.queue": "slow",
    }
    verb = "messaging.operation.name", "messaging.operation.type"
    assert send.attributes == names | dict.fromkeys(verb, "send")
    assert process.attributes == names | dict.fromkeys(verb, "process") | {"fastqueue.attempt": 1}
    assert process.status.status_code is StatusCode.UNSET


async def test_with_parent_a_run_goes_on_in_the_trace_of_its_push_and_still_links_to_it(told: Told) -> None:
    app = App(told, parent=True)
    await app.mail.push("ada")
    await app.queue.drain()
    send, process = told.one("send mail"), told.one("process mail")
    assert context_of(process).trace_id == context_of(send).trace_id
    assert process.parent is not None
    assert process.parent.span_id == context_of(send).span_id
    assert [link.context.span_id for link in process.links] == [context_of(send).span_id]


@pytest.mark.parametrize("parent", [False, True])
async def test_baggage_comes_along_to_the_run_and_no_further(told: Told, parent: bool) -> None:
    app = App(told, parent=parent)
    before = context.attach(baggage.set_baggage("tenant", "acme"))
    await app.mail.push("ada")
    context.detach(before)
    await app.mail.push("bob")
    await app.queue.drain()
    assert app.baggage == ["acme", None]


async def test_more_baggage_than_a_job_may_carry_stays_behind_and_the_trace_comes_along(told: Told) -> None:
    app = App(told)
    before = context.attach(baggage.set_baggage("tenant", "x" * MAX_CARRIED_BYTES))
    await app.mail.push("ada")
    context.detach(before)
    await app.queue.drain()
    assert app.baggage == [None]
    assert len(told.one("process mail").links) == 1


@pytest.mark.parametrize("carried", ["", "00-zz", "00-" + "0" * 32 + "-" + "0" * 16 + "-01"])
def test_a_stored_trace_that_is_none_is_not_linked_to(told: Told, carried: str) -> None:
    carry = CarryTrace(tracer_provider=told.tracers, meter_provider=told.meters)
    with carry.running("mail", "default", {"traceparent": carried, "baggage": "\x00;=,"}, 1):
        pass
    assert told.one("process mail").links == ()


async def test_each_attempt_is_a_span_with_the_same_link_and_its_own_error(told: Told) -> None:
    app = App(told)
    app.ends = [ValueError("no such box"), Permanent(LookupError("never"))]
    await app.mail.push("ada")
    await app.queue.drain()

    first, last = told.named("process mail")
    assert len({link.context.span_id for span in (first, last) for link in span.links}) == 1
    assert first.attributes is not None
    assert last.attributes is not None
    assert (first.attributes["fastqueue.attempt"], last.attributes["fastqueue.attempt"]) == (1, 2)
    assert (first.attributes["error.type"], last.attributes["error.type"]) == (
        "ValueError",
        "fastqueue.errors.Permanent",
    )
    assert {first.status.status_code, last.status.status_code} == {StatusCode.ERROR}
    assert first.status.description == "ValueError: no such box"
    assert [event.name for event in first.events] == ["exception"]
    assert told.counted("messaging.client.consumed.messages", "fastqueue.outcome", "error.type") == {
        ("retried", "ValueError"): 1,
        ("failed", "fastqueue.errors.Permanent"): 1,
    }


async def test_a_run_that_ran_out_of_time_has_that_as_its_error(told: Told) -> None:
    queue = Queue(
        "memory://", carry=[CarryTrace(tracer_provider=told.tracers)], observe=MeasureRuns(meter_provider=told.meters)
    )

    @queue.handle("wait", timeout=0.01, attempts=1)
    async def wait(name: str) -> None:
        await asyncio.Event().wait()

    await wait.push("for ever")
    await queue.drain()
    span = told.one("process wait")
    assert span.attributes is not None
    assert span.attributes["error.type"] == "fastqueue.errors.OutOfTime"
    assert span.status.status_code is StatusCode.ERROR
    await queue.close()


async def test_an_on_fail_has_a_span_that_links_to_the_push_too(told: Told) -> None:
    app = App(told, attempts=1)
    app.ends = [ValueError("no")]
    current: list[trace.SpanContext] = []

    @app.mail.on_fail
    async def gave_up(to: str, error: Exception) -> None:
        current.append(trace.get_current_span().get_span_context())

    await app.mail.push("ada")
    await app.queue.drain()
    run, after = told.named("process mail")
    assert current == [context_of(after)]
    assert run.links[0].context == after.links[0].context


async def test_the_run_of_a_schedule_is_traced_and_links_to_nothing(told: Told) -> None:
    app = App(told)
    app.mail.schedule(every(60), "daily")
    await Ticker(app.queue).push_due()
    app.clock.move(60)
    await app.queue.drain()
    process = told.one("process mail")
    assert (process.links, process.parent) == ((), None)
    assert app.current == [context_of(process)]


async def test_a_batch_is_one_push_that_all_its_runs_link_to(told: Told) -> None:
    app = App(told)
    await app.mail.push_many(["ada", "bob", "cleo"])
    await app.mail.push("dan")
    await app.queue.drain()
    batch, single = told.named("send mail")
    assert batch.attributes is not None
    assert single.attributes is not None
    assert batch.attributes["messaging.batch.message_count"] == 3
    assert "messaging.batch.message_count" not in single.attributes
    linked = [link.context.span_id for span in told.named("process mail") for link in span.links]
    assert linked == [context_of(batch).span_id] * 3 + [context_of(single).span_id]
    assert len({context_of(span).trace_id for span in told.named("process mail")}) == 4
    assert told.counted("messaging.client.sent.messages", "messaging.destination.name") == {("mail",): 4}


async def test_a_push_that_fails_is_an_error_in_its_trace_and_among_those_sent(told: Told) -> None:
    class Broken(MemoryStore):
        async def push(self, *args: Any, **more: Any) -> Any:
            raise ConnectionError("no line")

    app = App(told)
    app.queue = Queue(Broken(), carry=[CarryTrace(tracer_provider=told.tracers, meter_provider=told.meters)])
    mail = app.queue.kind("mail", str)
    with pytest.raises(ConnectionError):
        await mail.push("ada")
    span = told.one("send mail")
    assert span.status.status_code is StatusCode.ERROR
    assert told.counted("messaging.client.sent.messages", "error.type") == {("ConnectionError",): 1}
    with pytest.raises(ValueRefused):
        await mail.push(7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert len(told.named("send mail")) == 1


async def test_runs_and_pushes_are_measured_in_seconds_by_the_conventions_buckets(told: Told) -> None:
    app = App(told)
    await app.mail.push("ada")
    app.clock.move(30)
    await app.queue.drain()
    (waited,) = told.points("fastqueue.wait.duration")
    (took,) = told.points("messaging.process.duration")
    (pushed,) = told.points("messaging.client.operation.duration")
    assert (waited.sum, waited.count) == (30, 1)
    assert (took.count, took.sum) == (1, app.ran[0].took)
    assert pushed.count == 1
    for point in (waited, took, pushed):
        assert tuple(point.explicit_bounds)[:2] == (0.005, 0.01)
        assert tuple(point.explicit_bounds)[-1] == 10
    assert took.attributes == {
        "messaging.system": "fastqueue",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "mail",
        "fastqueue.queue": "default",
        "fastqueue.outcome": "done",
    }


async def test_a_run_that_is_held_back_is_not_measured(told: Told) -> None:
    measure = MeasureRuns(meter_provider=told.meters)
    for outcome in (Outcome.HELD_BACK, Outcome.DONE):
        measure(Ran("mail", 1, outcome, None, took=0.0, waited=0.0, id=1, queue="default"))
    assert told.counted("messaging.client.consumed.messages", "fastqueue.outcome") == {("done",): 1}


# in an app


@pytest.mark.skipif("telemetry" not in signature(FastAPI).parameters, reason="a later FastAPI traces its requests")
@pytest.mark.parametrize("path", ["/async", "/sync"])
def test_a_job_s_span_links_to_the_request_that_pushed_it(told: Told, path: str) -> None:
    carry = CarryTrace(tracer_provider=told.tracers, meter_provider=told.meters)
    ran = asyncio.Event()
    queue = Queue("memory://", carry=[carry])

    @queue.handle("mail")
    async def mail(to: str) -> None:
        with told.tracers.get_tracer("app").start_as_current_span("inside the job"):
            ran.set()

    app = FastAPI(
        lifespan=lifespan(queue),
        telemetry={"tracer_provider": told.tracers, "meter_provider": told.meters, "auto_configure": False},
    )

    @app.get("/async")
    async def push() -> None:
        await mail.push("ada")

    @app.get("/sync")
    def push_sync() -> None:
        mail.push_sync("ada")

    @app.get("/ran")
    async def has_run() -> None:
        await asyncio.wait_for(ran.wait(), 10)

    with TestClient(app) as client:
        assert client.get(path).status_code == 200
        assert client.get("/ran").status_code == 200

    send, process, inside = told.one("send mail"), told.one("process mail"), told.one("inside the job")
    (request,) = [
        span
        for span in told.spans.get_finished_spans()
        if span.kind is SpanKind.SERVER and context_of(span).trace_id == context_of(send).trace_id
    ]
    assert path in request.name
    assert send.parent is not None
    assert process.parent is None
    assert process.links[0].context.trace_id == context_of(request).trace_id
    assert process.links[0].context.span_id == context_of(send).span_id
    assert inside.parent == context_of(process)


WITHOUT_SDK = """
import asyncio, sys
sys.modules["opentelemetry.sdk"] = None
from opentelemetry import propagate, context
from fastqueue import Queue
from fastqueue.otel import CarryTrace, MeasureRuns

ran = []
queue = Queue("memory://", carry=[CarryTrace()], observe=MeasureRuns())

@queue.handle("mail")
async def mail(to: str) -> None:
    ran.append(to)

async def main() -> None:
    context.attach(propagate.extract({"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}))
    await mail.push("ada")
    (job,) = await queue.store.jobs(now=0)
    await queue.drain()
    print(job.carried["traceparent"], *ran)

asyncio.run(main())
"""

WITHOUT_API = """
import sys
sys.modules["opentelemetry"] = None
import fastqueue
try:
    import fastqueue.otel
except fastqueue.FastQueueError as error:
    print(error)
"""


def said_by(program: str) -> str:
    """What a process prints that runs a program."""
    run = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@pytest.mark.processes
def test_without_an_sdk_jobs_run_and_bring_along_the_trace_that_came_with_the_request() -> None:
    assert said_by(WITHOUT_SDK) == "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 ada"


@pytest.mark.processes
def test_without_the_api_the_import_says_what_to_install() -> None:
    assert said_by(WITHOUT_API) == 'fastqueue.otel needs opentelemetry-api: pip install "fastqueue[otel]"'

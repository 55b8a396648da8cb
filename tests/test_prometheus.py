"""A queue's numbers as Prometheus reads them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import urllib.request
from contextlib import suppress

import httpx
import pytest
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette

from fastqueue import Permanent, Queue, Ran
from fastqueue.prometheus import QueueMetrics, metrics
from fastqueue.testing import FakeClock

Samples = dict[tuple[str, str, str], float]


def read(text: str) -> Samples:
    """Samples by name, kind and what else tells them apart."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            more = sample.labels.get("outcome") or sample.labels.get("le") or ""
            assert set(sample.labels) <= {"queue", "kind", "outcome", "le"}
            found[sample.name, sample.labels.get("kind", ""), more] = sample.value
    return found


async def scrape(app: Starlette) -> Samples:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        answer = await client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    return read(answer.text)


def app_of(queue: Queue, *, fresh_for: float = 0) -> Starlette:
    app = Starlette()
    app.add_route("/metrics", metrics(queue, registry=CollectorRegistry(), fresh_for=fresh_for))
    return app


@pytest.mark.parametrize("url", ["memory", "sqlite_url", "postgres_url", "mysql_url", "redis_url"])
async def test_what_is_in_the_store_is_told_by_queue_and_kind(url: str, request: pytest.FixtureRequest) -> None:
    clock = FakeClock()
    where = "memory://" if url == "memory" else request.getfixturevalue(url)
    async with Queue(where, clock=clock) as queue:

        @queue.handle("greet", queue="mail")
        async def greet(name: str) -> None:
            raise Permanent("no such mailbox")

        app = app_of(queue)
        await greet.push("Ada")
        await queue.drain()
        await greet.push_many(["Bob", "Eve"])
        await greet.push("Joan", delay=600)
        await queue.store.claim(queue.clock.now(), token=7, limit=1, queues=None, kinds={"greet"})
        clock.move(30)

        seen = await scrape(app)

    assert seen["fastqueue_store_up", "", ""] == 1
    for state in ("waiting", "delayed", "running", "failed"):
        assert seen[f"fastqueue_jobs_{state}", "greet", ""] == 1, state
    assert seen["fastqueue_oldest_seconds", "greet", ""] == 30


async def test_runs_are_counted_by_how_they_ended_and_what_observed_them_before_still_does() -> None:
    told: list[Ran] = []
    async with Queue("memory://", observe=told.append) as queue:

        @queue.handle("greet")
        async def greet(name: str) -> None:
            if name == "nobody":
                raise Permanent("there is no such person")

        app = app_of(queue)
        await greet.push_many(["Ada", "Bob", "nobody"])
        await queue.drain()

        seen = await scrape(app)

    assert len(told) == 3
    assert seen["fastqueue_runs_total", "greet", "done"] == 2
    assert seen["fastqueue_runs_total", "greet", "failed"] == 1
    assert seen["fastqueue_run_seconds_count", "greet", ""] == 3
    assert seen["fastqueue_wait_seconds_count", "greet", ""] == 3
    assert seen["fastqueue_run_seconds_bucket", "greet", "+Inf"] == 3


async def test_a_store_that_is_away_is_told_and_the_rest_still_shown() -> None:
    queue = Queue("postgresql://postgres@127.0.0.1:1/nowhere")

    seen = await scrape(app_of(queue))

    assert seen["fastqueue_store_up", "", ""] == 0
    assert not any(name.startswith("fastqueue_jobs") for name, _, _ in seen)
    await queue.close()


async def test_an_answer_of_the_store_is_given_again_while_it_is_fresh() -> None:
    async with Queue("memory://") as queue:
        greet = queue.kind("greet", str)
        app = app_of(queue, fresh_for=3600)
        await greet.push("Ada")
        first = await scrape(app)
        await greet.push("Bob")

        assert await scrape(app) == first


async def test_a_server_of_prometheus_s_own_asks_the_store_from_its_thread(sqlite_url: str) -> None:
    queue = Queue(sqlite_url)
    registry = CollectorRegistry()
    QueueMetrics(queue, registry=registry, fresh_for=0)
    ran = asyncio.Event()

    @queue.handle("greet")
    async def greet(name: str) -> None:
        ran.set()

    later = queue.kind("later", str)
    server, thread = start_http_server(0, addr="127.0.0.1", registry=registry)
    running = asyncio.create_task(queue.run())
    try:
        await later.push("Joan")
        await greet.push("Ada")
        await ran.wait()
        address = f"http://127.0.0.1:{server.server_port}/metrics"
        answer = await asyncio.to_thread(lambda: urllib.request.urlopen(address).read())
        assert read(answer.decode())["fastqueue_jobs_waiting", "later", ""] == 1
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        server.shutdown()
        server.server_close()
        thread.join()
        await queue.close()


async def test_one_registry_takes_one_queue() -> None:
    registry = CollectorRegistry()
    QueueMetrics(Queue("memory://"), registry=registry)

    with pytest.raises(ValueError, match="fastqueue_runs"):
        QueueMetrics(Queue("memory://"), registry=registry)


def test_without_its_extra_the_module_gives_the_install_line() -> None:
    code = "import sys; sys.modules['prometheus_client'] = None; import fastqueue.prometheus"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert ended.returncode == 1
    assert 'needs prometheus_client: pip install "fastqueue[prometheus]"' in ended.stderr

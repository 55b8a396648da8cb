"""What the second of the two systems that fastqueue stands for promised, V1 to V29, one test for each."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from asgi_lifespan import LifespanManager
from cryptography.fernet import Fernet
from fastapi import FastAPI
from pydantic import BaseModel
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from fastqueue import Defaults, Kinds, Outcome, Queue, Run, constant, exponential
from fastqueue.environ import QueueSettings
from fastqueue.errors import InlineDelay, OptionError, RegistrationError, StoreUnavailable
from fastqueue.events import Events
from fastqueue.fastapi import lifespan
from fastqueue.mail import Mail, Mailer
from fastqueue.outcome import Settlement
from fastqueue.stores import store_of
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing import FakeClock, FakeQueue, exercise
from fastqueue.worker import settle
from tests.cli.command import Command, push_failed
from tests.servers.smtp import mail_server
from tests.worker.stage import Faulty, Observed, kept, lines, running, soon, stopped, taken

DOCS = Path(__file__).parents[1] / "docs"


class SendInvoice(BaseModel):
    order: int


class App:
    """A queue whose one kind remembers what it was called with, and fails when it is asked to."""

    def __init__(self, store: Any = "memory://", **options: Any) -> None:
        self.clock = FakeClock()
        self.observed = Observed()
        self.seen: list[str] = []
        self.queue = Queue(store, clock=self.clock, observe=self.observed, **options)

        @self.queue.handle("greet")
        async def greet(name: str, run: Run) -> None:
            self.seen.append(name)
            if name == "bad":
                raise LookupError(f"no such name, attempt {run.attempt}")

        self.greet = greet

    async def drained(self) -> list[str]:
        await self.queue.drain()
        return self.seen


@pytest.fixture(params=["sqlite", "postgres", "mysql", "redis"])
def url(request: pytest.FixtureRequest) -> str:
    """A new database of each sort."""
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


# -- jobs and how they are registered ------------------------------------------------------------------------------


async def test_v1_a_job_is_json_under_a_stable_name_and_its_handler_is_built_from_the_app() -> None:
    queue, mailed = Queue("memory://"), list[int]()

    class Invoices:
        def __init__(self, outbox: list[int]) -> None:
            self.outbox = outbox

        async def send(self, job: SendInvoice) -> None:
            self.outbox.append(job.order)

    kind = queue.handle("send_invoice", Invoices(mailed).send)
    await kind.push(SendInvoice(order=7))
    (job,) = await queue.store.jobs(now=0)
    assert (job.kind, json.loads(job.payload)) == ("send_invoice", {"order": 7})
    await queue.drain()
    assert mailed == [7]


async def test_v2_a_function_that_makes_the_kinds_is_called_once_its_error_comes_out_and_it_cannot_push() -> None:
    app, calls = App(), list[str]()

    def make() -> Kinds:
        calls.append("made")
        made = Kinds()

        @made.handle("made")
        async def handler(name: str) -> None:
            await app.greet.push(name)

        return made

    app.queue.include(make)
    await app.queue.kinds["made"].push("Ann")
    assert await app.drained() == ["Ann"], "a handler may push when it runs"
    assert calls == ["made"]

    def broken() -> Kinds:
        raise ZeroDivisionError

    def pushing() -> Kinds:
        app.greet.push("Ann")  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
        return Kinds()

    with pytest.raises(ZeroDivisionError):
        app.queue.include(broken)
    with pytest.raises(RegistrationError, match=r"inside .*pushing.*: push after include"):
        app.queue.include(pushing)


def test_v3_a_kind_registered_twice_is_an_error() -> None:
    app = App()
    with pytest.raises(RegistrationError, match="kind 'greet' is there already"):
        app.queue.kind("greet", str)


async def test_v4_a_push_goes_before_its_kind_in_queue_delay_retries_backoff_and_timeout() -> None:
    clock, runs = FakeClock(), list[tuple[str, int, bool]]()
    queue = Queue("memory://", clock=clock)

    @queue.handle("fail", retries=9, backoff=constant(5), timeout=30, queue="slow")
    async def fail(name: str, run: Run) -> None:
        runs.append((run.queue, run.attempts_left, run.deadline is None))
        raise ValueError

    await fail.push("x", queue="billing", delay=300, retries=1, backoff=constant(60), timeout=None)
    for move, expected in ((299.999, 0), (0.001, 1), (59.999, 0), (0.001, 1), (86_400, 0)):
        clock.move(move)
        assert await queue.drain() == expected
    assert runs == [("billing", 1, True), ("billing", 0, True)]


async def test_v5_a_worker_serves_its_queues_in_the_order_in_which_they_are_named() -> None:
    app = App(queues=["high", "default"])
    await app.greet.push("Ann")
    await app.greet.push("Bob", queue="other")
    await app.greet.push("Cid", queue="high", delay=1)
    app.clock.move(1)
    assert await app.drained() == ["Cid", "Ann"], "high first though it was due later; other not at all"
    assert [job.queue for job in await app.queue.store.jobs(now=0)] == ["other"]


async def test_v6_its_defaults_are_three_retries_a_second_doubled_and_a_minute() -> None:
    app = App(defaults=Defaults.vukem())
    options = app.greet.options
    assert (options.attempts, options.timeout_ms, options.queue) == (4, 60_000, "default")
    assert [options.backoff(attempt) for attempt in (1, 2, 3, 12, 13, 99)] == [1, 2, 4, 2048, 3600, 3600]


async def test_v7_a_backoff_is_exponential_constant_or_a_function_which_a_push_cannot_keep() -> None:
    assert [exponential(2)(n) for n in (1, 2, 3)] == [2, 4, 8]
    assert constant(7)(99) == 7
    app = App()
    by_function = app.queue.handle("other", app.greet.handler.function, backoff=lambda n: n * 10)  # type: ignore[union-attr]
    assert by_function.options.backoff(3) == 30
    with pytest.raises(OptionError, match="backoff"):
        await app.greet.push("Ann", backoff=lambda n: n * 10)
    assert await kept(app.queue.store) == []  # type: ignore[arg-type]


async def test_v8_a_worker_survives_what_a_handler_raises_and_the_job_ends_with_its_last_error() -> None:
    app = App(defaults=Defaults(attempts=2, backoff=constant(10)))

    @app.queue.handle("exit")
    async def leave(_: None) -> None:
        raise SystemExit("out")

    await leave.push(None)
    await app.greet.push("bad")
    await app.queue.drain()
    app.clock.move(10)
    await app.queue.drain()
    failed = {job.kind: (job.attempts, job.error) for job in await app.queue.failed()}
    assert failed == {"exit": (2, "out"), "greet": (2, "no such name, attempt 2")}


# -- the stop, settling, the clock ---------------------------------------------------------------------------------


class Blocking:
    """A queue on a store that outlives it, with a handler that ends when it is cancelled."""

    def __init__(self, store: MemoryStore, *, timeout: float = 30, **settings: Any) -> None:
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()
        self.observed = Observed()
        self.queue = Queue(store, observe=self.observed, defaults=Defaults(attempts=2), **settings)

        @self.queue.handle("wait", timeout=timeout)
        async def wait(_: None) -> None:
            self.begun.set()
            await self.ended.wait()

        self.wait = wait


async def test_v9_a_stop_claims_no_more_waits_for_the_grace_and_then_cancels() -> None:
    store = MemoryStore()
    app = Blocking(store, workers=1, grace=30)
    await app.wait.push_many([None, None])
    run = asyncio.create_task(app.queue.run())
    await soon(app.begun.wait())
    run.cancel()
    await asyncio.sleep(0)
    app.ended.set()
    await stopped(run)
    assert app.observed.outcomes == ["done"], "the one that ran had the time, and the other was not begun"
    assert len(await kept(store)) == 1

    short = Blocking(store, workers=1, grace=0.001)
    run = asyncio.create_task(short.queue.run())
    await soon(short.begun.wait())
    await stopped(run)
    assert short.observed.outcomes == ["put back"]

    patient = Blocking(MemoryStore(), workers=1, grace=0, timeout=0.1)
    await patient.wait.push(None)
    run = asyncio.create_task(patient.queue.run())
    await soon(patient.begun.wait())
    await stopped(run)
    assert patient.observed.outcomes == ["retried"], "0: it has its own time limit, and no interruption cut it"


async def test_v10_an_interruption_is_free_three_times_in_a_row_and_then_uses_an_attempt() -> None:
    store = MemoryStore()
    attempts: list[int] = []
    for n in range(4):
        app = Blocking(store, grace=0.001)
        if n == 0:
            await app.wait.push(None)
        run = asyncio.create_task(app.queue.run())
        await soon(app.begun.wait())
        await stopped(run)
        attempts.append((await kept(store))[0].attempts)
    assert attempts == [0, 0, 0, 1]


async def test_v11_a_store_that_hangs_does_not_hold_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(MemoryStore):
        hangs = True

        async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
            if self.hangs:
                await asyncio.Event().wait()
            return await super().settle(settlements)

    assert settle.SETTLE_BOUND == 10
    monkeypatch.setattr(settle, "SETTLE_BOUND", 0.01)
    store = Hanging()
    app = App(store)
    await app.greet.push("Ann")
    with pytest.raises(StoreUnavailable, match="did not answer within"):
        await soon(app.queue.drain())
    store.hangs = False
    await app.greet.push("Bob")
    assert await app.drained() == ["Ann", "Bob"]


async def test_v12_the_app_s_clock_decides_delays_and_backoffs_on_every_store(url: str) -> None:
    app = App(url, defaults=Defaults(attempts=2, backoff=constant(60)))
    async with app.queue:
        await app.greet.push("bad", delay=3600)
        for move, runs in ((0, 0), (3599.999, 0), (0.001, 1), (59.999, 0), (0.001, 1)):
            app.clock.move(move)
            assert await app.queue.drain() == runs
        (failed,) = await app.queue.failed()
    assert failed.failed_at == datetime(2026, 9, 1, 13, 1, tzinfo=UTC)


@pytest.mark.parametrize("store", ["sqlite", "memory", "inline", "fake"])
async def test_v13_a_push_in_a_transaction_goes_with_its_commit_on_every_store(
    store: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "app.db"
    app = App(FakeQueue().store if store == "fake" else f"sqlite:///{file}" if store == "sqlite" else f"{store}://")
    engine = create_async_engine(f"sqlite+aiosqlite:///{file}")
    async with app.queue, AsyncSession(engine) as session:
        await session.execute(text("create table t (n integer)"))
        await session.commit()
        for name in ("gone", "Ann", "bad"):
            await session.execute(text("insert into t values (1)"))
            await app.greet.in_(session).push(name)
            assert name not in await app.drained()
            await (session.rollback() if name == "gone" else session.commit())
            await app.queue.drain()
    await engine.dispose()
    assert app.seen == ["Ann", "bad"]
    assert "no such name" in caplog.text, "on inline too it is logged and not raised"


async def test_v14_a_store_that_fails_ends_a_drain_and_a_command_with_an_error_and_no_long_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = App(Faulty(claiming=[StoreUnavailable("no route to it")]))
    with pytest.raises(StoreUnavailable, match="no route to it"):
        await app.queue.drain()
    again = App(Faulty(claiming=[StoreUnavailable("no route to it")]), poll=0.01)
    await again.greet.push("Ann")
    async with running(again.queue):
        assert (await again.observed.next()).outcome is Outcome.DONE
    assert any("a claim failed" in line for line in lines(caplog, logging.ERROR))
    for option in ("--once", "--stop-when-empty"):
        answer = await asyncio.to_thread(Command("postgresql://nobody@127.0.0.1:1/none"), "work", option)
        assert answer.status == 1


# -- the stores ----------------------------------------------------------------------------------------------------


async def test_v15_jobs_of_one_millisecond_come_out_as_they_were_pushed(url: str) -> None:
    app = App(url)
    async with app.queue:
        for n in range(10):
            await app.greet.push(str(n))
        await app.greet.push_many([str(n) for n in range(10, 20)])
        assert await app.drained() == [str(n) for n in range(20)]


async def test_v16_inline_runs_at_the_push_raises_its_error_there_and_cannot_delay() -> None:
    app = App("inline://")
    await app.greet.push("Ann")
    with pytest.raises(LookupError):
        await app.greet.push("bad")
    with pytest.raises(InlineDelay):
        await app.greet.push("late", delay=1)
    assert app.seen == ["Ann", "bad"]


async def test_v17_jobs_in_memory_are_worked_beside_the_server() -> None:
    app = App()
    async with LifespanManager(FastAPI(lifespan=lifespan(app.queue))):
        await app.greet.push("Ann")
        assert (await app.observed.next()).outcome is Outcome.DONE


async def test_v18_workers_that_claim_at_once_share_the_jobs_and_none_is_taken_twice(url: str) -> None:
    app = App(url)
    others = [store_of(url) for _ in range(3)]
    async with app.queue:
        await app.greet.push_many([str(n) for n in range(30)])
        now = app.queue.clock.now()
        for store in others:
            await store.open()
        claims = await asyncio.gather(
            *(store.claim(now, token=n, limit=20, queues=None, kinds=["greet"]) for n, store in enumerate(others, 1))
        )
        taken_ids = [job.id for claim in claims for job in claim.jobs]
        assert len(set(taken_ids)) == len(taken_ids) == 30
        for store in others:
            await store.close()


async def test_v19_the_job_of_a_dead_worker_is_taken_over_a_minute_after_its_own_timeout() -> None:
    store = MemoryStore()
    app = App(store)
    await app.greet.push("Ann", timeout=30)
    now = app.queue.clock.now()
    assert await taken(store, "greet", now, token=1)
    assert await taken(store, "greet", now + 89_999, token=2) == []
    (job,) = await taken(store, "greet", now + 90_000, token=3)
    assert (job.lost, job.attempts) == (True, 2)


async def test_v20_what_a_slow_worker_says_after_the_takeover_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    app = App(store)
    slow: list[Any] = []

    @app.queue.handle("slow", attempts=1)
    async def work(_: None) -> None:
        app.clock.move(120)
        slow.extend(await taken(store, "slow", app.queue.clock.now(), token=7))
        raise ValueError

    await work.push(None)
    await app.queue.drain()
    assert app.observed.outcomes == ["lost"]
    assert await app.queue.failed() == []
    assert await store.settle([Settlement.done(slow[0])]) == [True], "the second one has it still"
    assert "another claim has its job" in caplog.text


# -- running, by a server and by a command -------------------------------------------------------------------------


async def test_v21_a_server_runs_workers_unless_it_is_told_not_to_and_never_for_inline() -> None:
    for queue, run, works in (
        (Queue("memory://"), True, True),
        (Queue("memory://"), False, False),
        (Queue("inline://"), True, False),
    ):
        async with LifespanManager(FastAPI(lifespan=lifespan(queue, run=run))):
            assert (queue.worker is not None) is works
    told = {"QUEUE_IN_SERVE": "false", "QUEUE_NAMES": "high,default", "QUEUE_CONCURRENCY": "3", "SHUTDOWN_TIMEOUT": "7"}
    read = QueueSettings.from_environ(told)
    assert (read.in_serve, read.queues, read.workers, read.grace) == (False, ("high", "default"), 3, 7)


async def test_v22_failed_jobs_are_listed_retried_and_forgotten_by_the_command(sqlite_url: str) -> None:
    command = Command(sqlite_url)
    first, second, third = await push_failed(sqlite_url, "one", "two", "three")
    listed = json.loads((await asyncio.to_thread(command, "failed", "--json")).out)
    assert {job["error"] for job in listed} == {"one", "two", "three"}
    forgotten = await asyncio.to_thread(command, "forget", str(first), str(third + 99))
    assert forgotten.status == 1, "an id that is none, after doing the rest"
    assert (await asyncio.to_thread(command, "retry", str(second))).status == 0
    assert (await asyncio.to_thread(command, "retry", "all")).status == 0
    done = await asyncio.to_thread(
        command, "work", "--queue", "high,default", "--concurrency", "2", "--stop-when-empty"
    )
    assert (done.status, done.out.count("hello Ada")) == (0, 2)
    assert (await asyncio.to_thread(command, "forget", "all")).status == 0


def test_v23_a_job_and_a_listener_are_begun_by_the_command(tmp_path: Path) -> None:
    command = Command("memory://", tmp_path)
    assert command("new", "job", "SendInvoice", app=None).status == 0
    assert command("new", "listener", "UpdateStock", "--event", "OrderShipped", app=None).status == 0
    assert sorted(path.name for path in tmp_path.glob("*.py")) == ["send_invoice.py", "update_stock.py"]


# -- mail, events, tests -------------------------------------------------------------------------------------------


async def test_v24_mail_for_later_is_rendered_at_once_kept_encrypted_and_has_one_message_id() -> None:
    with mail_server() as (server, where):
        app = App()
        mailer = Mailer(where, sender="shop@example.com", keys=[Fernet.generate_key()])
        app.queue.include(mailer.kinds)
        await mailer.send_later(Mail(to="ann@example.org", subject="Welcome", text="hello"))
        (job,) = await app.queue.store.jobs(now=0)
        assert "Welcome" not in job.payload
        server.answers_next = ["451 later", "cut"]
        for _ in range(3):
            await app.queue.drain()
            app.clock.move(3600)
    assert len(server.mails) == 1
    assert len(server.seen) == 3
    assert len(set(server.seen)) == 1


async def test_v25_an_event_is_kept_as_json_for_each_listener_and_only_the_push_can_fail() -> None:
    app, events, heard = App(), Events(), list[int]()

    @events.handle("update_stock")
    async def update_stock(event: SendInvoice) -> None:
        heard.append(event.order)
        raise ValueError

    app.queue.include(events)
    await events.publish(SendInvoice(order=7))
    (job,) = await app.queue.store.jobs(now=0)
    assert (job.kind, json.loads(job.payload)) == ("update_stock", {"order": 7})
    await app.queue.drain()
    assert heard == [7]


async def test_v26_a_fake_queue_tells_what_was_pushed_takes_delays_and_works_on_demand(fake_queue: FakeQueue) -> None:
    ran: list[int] = []

    @fake_queue.handle("send_invoice")
    async def send_invoice(job: SendInvoice) -> None:
        ran.append(job.order)

    await send_invoice.push(SendInvoice(order=1), delay=60)
    assert fake_queue.pushed(send_invoice) == [SendInvoice(order=1)]
    assert await fake_queue.drain() == 0
    fake_queue.fake_clock.move(60)
    assert await fake_queue.drain() == 1
    assert ran == [1]


async def test_v27_a_store_of_one_s_own_is_a_class_that_the_conformance_kit_checks() -> None:
    class Plain(MemoryStore):
        name = "plain"
        keeps = frozenset()

        def __init__(self) -> None:
            super().__init__()
            self.failed = self.schedules = self.holds = self.throttles = None

    @asynccontextmanager
    async def fresh() -> AsyncGenerator[Any]:
        yield Plain().again

    report = await exercise(fresh, only="test_b1")
    assert report.passed, str(report)
    assert not report.failed, str(report)
    app = App(Plain())
    await app.greet.push("Ann")
    assert await app.drained() == ["Ann"]


def test_v28_the_pages_say_that_sqlite_has_one_writer() -> None:
    assert "Writes happen one at a time" in (DOCS / "stores.md").read_text()
    assert "keep `workers` low" in (DOCS / "stores.md").read_text()


async def test_v29_a_job_may_run_twice_and_the_pages_say_so() -> None:
    store = MemoryStore()
    app = App(store)
    await app.greet.push("Ann")
    assert await taken(store, "greet", app.queue.clock.now()), "a worker that did the work and died"
    app.clock.move(120)
    assert await app.drained() == ["Ann"]
    assert "write handlers that do no harm the\nsecond time" in (DOCS / "life-of-a-job.md").read_text()

"""The queue in real servers with several processes: started, loaded, reloaded, told to stop, killed."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from fastqueue.stores import store_of
from tests.deployed.server import GUNICORN, ROOT, UVICORN, Place, Server, serving, until

pytestmark = pytest.mark.processes

on_sqlite = pytest.mark.parametrize("place", ["sqlite"], indirect=True)

LOADERS = 6


class Load:
    """Clients that post notes one after the other until the server is gone."""

    def __init__(self, server: Server) -> None:
        self.answered = set[int]()
        self.unanswered = set[int]()
        self.refused = list[int]()
        self._server = server
        self._next = iter(range(1000, 1_000_000))
        self._tasks = [asyncio.create_task(self._post()) for _ in range(LOADERS)]

    async def _post(self) -> None:
        for number in self._next:
            try:
                answer = await self._server.client.post(f"/notes/{number}")
            except httpx.ConnectError:
                return  # it was never sent
            except httpx.TransportError:
                self.unanswered.add(number)
                return
            if answer.status_code == 200:
                self.answered.add(number)
            else:
                self.refused.append(answer.status_code)

    async def over(self) -> None:
        await asyncio.gather(*self._tasks)


@pytest.mark.parametrize(
    ("command", "place"),
    [(UVICORN, "sqlite"), (UVICORN, "postgres"), (UVICORN, "mysql"), (GUNICORN, "sqlite")],
    ids=["uvicorn-sqlite", "uvicorn-postgres", "uvicorn-mysql", "gunicorn-sqlite"],
    indirect=["place"],
)
async def test_a_stop_under_load_fails_no_request_that_was_begun_and_loses_or_doubles_no_job(
    command: tuple[str, ...], place: Place
) -> None:
    async with serving(place, command) as server:
        load = Load(server)
        slow = [asyncio.create_task(server.client.post(f"/slow/{number}")) for number in range(10)]
        await until(lambda: len(place.page("serving")) == 10 and len(load.answered) >= 50, "the load")
        server.signal()
        place.open_gate()
        assert [answer.status_code for answer in await asyncio.gather(*slow)] == [200] * 10
        await load.over()
        assert await server.ended() in (0, -signal.SIGTERM), server.log.read_text()
    assert load.refused == []
    place.work()
    ran = place.page("ran")
    acknowledged = load.answered | set(range(10))
    assert acknowledged <= set(ran) <= acknowledged | load.unanswered
    assert set(ran.values()) == {1}


@pytest.mark.parametrize("command", [UVICORN, GUNICORN], ids=["uvicorn", "gunicorn"])
@on_sqlite
async def test_each_process_of_a_server_runs_the_queue_and_a_job_that_runs_at_the_stop_ends(
    command: tuple[str, ...], place: Place
) -> None:
    async with serving(place, command) as server:
        for number in range(8):
            assert (await server.client.post(f"/linger/{number}")).status_code == 200
        await until(lambda: len(place.page("begun")) == 8, "eight jobs at once, four in each process")
        assert len(place.writers("begun")) == 2
        server.signal()
        place.open_gate()
        assert await server.ended() in (0, -signal.SIGTERM), server.log.read_text()
    assert place.page("ran") == dict.fromkeys(range(8), 1)


@on_sqlite
async def test_a_server_that_is_killed_leaves_its_jobs_to_be_run_and_those_it_never_claimed_at_once(
    place: Place,
) -> None:
    async with serving(place, ("uvicorn",), RUN="no") as server:
        for number in range(5):
            assert (await server.client.post(f"/notes/{number}")).status_code == 200
        os.killpg(server.process.pid, signal.SIGKILL)
    place.work()
    assert place.page("ran") == dict.fromkeys(range(5), 1)


async def test_a_server_that_only_pushes_is_ready_and_a_worker_elsewhere_runs_its_jobs(place: Place) -> None:
    async with serving(place, RUN="no") as server:
        for number in range(5):
            assert (await server.client.post(f"/notes/{number}")).status_code == 200
        answer = await server.client.get("/health")
        assert (answer.status_code, answer.json()["state"]) == (200, "elsewhere")
        store = store_of(place.url)
        await store.open()
        assert len(await store.jobs(now=0)) == 5
        await store.close()
        place.work()
        assert place.page("ran") == dict.fromkeys(range(5), 1)
        servers = {await server.pid() for _ in range(10)} | {server.process.pid}
        assert not servers & place.writers("ran")


@on_sqlite
async def test_a_reload_runs_the_new_code_and_what_was_pushed_before_it_once(place: Place, tmp_path: Path) -> None:
    site = tmp_path / "reloaded.py"
    shutil.copy(ROOT / "tests/deployed/site.py", site)
    command = ("uvicorn", "--reload", "--reload-dir", str(tmp_path), "--app-dir", str(tmp_path))
    async with serving(place, command, app="reloaded:app", folder=tmp_path) as server:
        before = await server.pid()
        for number in range(20):
            assert (await server.client.post(f"/notes/{number}")).status_code == 200
        site.write_text(site.read_text().replace('note_down("ran", number)', 'note_down("ran", number + 100)'))
        async with asyncio.timeout(60):
            while await _pid_once_up(server) in (before, None):  # noqa: ASYNC110  it tells nobody
                await asyncio.sleep(0.05)
        assert (await server.client.post("/notes/20")).status_code == 200
        await until(lambda: place.page("ran")[120] == 1, "the job in the new code")
        server.signal(signal.SIGINT)
        await server.ended()
    place.work()
    ran = {number % 100: times for number, times in place.page("ran").items()}
    assert ran == dict.fromkeys(range(21), 1)


async def _pid_once_up(server: Server) -> int | None:
    try:
        return await server.pid()
    except httpx.TransportError:
        return None


@on_sqlite
async def test_the_queue_of_a_mounted_app_says_what_is_missing_where_nobody_set_up_logging(place: Place) -> None:
    async with serving(place, ("uvicorn",), app="tests.deployed.site:mounting", ready="/jobs/pid") as server:
        assert (await server.client.post("/jobs/notes/1")).status_code == 200
        hint = "no workers run in this process"
        await until(lambda: hint in server.log.read_text(), "the hint")
        assert "of no mounted one" in server.log.read_text()
        answer = await server.client.get("/jobs/health")
        assert (answer.status_code, answer.json()["state"]) == (503, "never started")
    place.work()
    assert place.page("ran") == {1: 1}


@on_sqlite
async def test_a_second_signal_ends_the_server_at_once_and_its_jobs_run_after_their_holds(place: Place) -> None:
    async with serving(place, ("uvicorn",)) as server:
        assert (await server.client.post("/linger/1")).status_code == 200
        await until(lambda: place.page("begun")[1] == 1, "the job")
        slow = asyncio.create_task(server.client.post("/slow/2"))
        await until(lambda: place.page("serving")[2] == 1, "the request")
        server.signal(signal.SIGINT)
        await until(lambda: "Shutting down" in server.log.read_text(), "the stop")
        server.signal(signal.SIGINT)
        await server.ended()
        await asyncio.gather(slow, return_exceptions=True)
    store = store_of(place.url)
    await store.open()
    (job,) = await store.jobs(now=0, kind="linger")
    await store.close()
    assert job.attempts == 1, "it is still held: nothing was told of it, and nothing is lost"
    assert place.page("ran") == {}


@on_sqlite
async def test_a_client_that_hangs_up_while_its_request_is_served_costs_no_job(place: Place) -> None:
    async with serving(place, ("uvicorn",)) as server:
        _, writer = await asyncio.open_connection(server.client.base_url.host, server.client.base_url.port)
        writer.write(b"POST /slow/1 HTTP/1.1\r\nHost: site\r\nContent-Length: 0\r\n\r\n")
        await until(lambda: place.page("serving")[1] == 1, "the request")
        writer.transport.abort()
        place.open_gate()
        await until(lambda: place.page("ran")[1] == 1, "the job")
        server.signal()
        await server.ended()
    place.work()
    assert place.page("ran") == {1: 1}


@on_sqlite
async def test_a_job_of_a_process_that_the_server_kills_for_being_blocked_runs_in_another(place: Place) -> None:
    command = ("uvicorn", "--workers", "2", "--timeout-worker-healthcheck", "1")
    async with serving(place, command, MARGIN="1") as server:
        assert (await server.client.post("/block/1")).status_code == 200
        await until(lambda: place.page("ran")[1] == 1, "the job's second run")
        assert len(place.writers("begun")) == 2
        server.signal()
        await server.ended()
    assert place.page("begun") == {1: 2}


STRICT = """
from fastapi import FastAPI
from fastqueue import Queue
from fastqueue.fastapi import lifespan
from fastqueue.stores.sqlite import SQLiteStore

app = FastAPI(lifespan=lifespan(Queue(SQLiteStore("app.db", migrate=False))))
"""


@pytest.mark.parametrize("command", [("uvicorn",), GUNICORN], ids=["uvicorn", "gunicorn"])
def test_a_start_without_tables_says_the_command_that_makes_them_and_ends_with_an_error(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "strict.py").write_text(STRICT)
    name, *options = command
    address = ["--bind", "127.0.0.1:0"] if name == "gunicorn" else ["--port", "0"]
    ended = subprocess.run(
        [sys.executable, "-m", name, *address, *options, "strict:app"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode not in (0, None)
    assert "fastqueue migrate" in ended.stderr

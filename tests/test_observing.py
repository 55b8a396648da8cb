"""The recipes for logs on the page about observing, with real structlog, in a process of their own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "observing.md"

AN_APP = """
import queue as queues

from starlette.testclient import TestClient

set_up_logging()
queue = Queue("memory://", carry=queue.carry)
app = FastAPI(lifespan=lifespan(queue))
app.add_middleware(RequestIDMiddleware)
log = structlog.get_logger("app")
ended = queues.SimpleQueue()


@queue.handle("mail", attempts=1)
async def mail(to: str) -> None:
    log.info("mailing", to=to)
    logging.getLogger("app.old").warning("by the standard library")
    raise ValueError("no such box")


@mail.on_fail
async def gave_up(to: str, error: Exception) -> None:
    log.info("gave up")
    ended.put(to)


@app.get("/register")
async def register() -> None:
    with bound_contextvars(tenant="acme"):
        await mail.push("ada")


with TestClient(app) as client:
    client.get("/register", headers={"X-Request-ID": "r-1"})
    ended.get(timeout=20)
"""


def blocks() -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))


@pytest.mark.processes
def test_a_job_s_lines_in_structlog_have_what_its_request_had_bound(tmp_path: Path) -> None:
    program = blocks().partition("from fastqueue import Outcome, Ran")[0] + AN_APP
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    lines = [json.loads(line) for line in run.stderr.splitlines()]
    ours = {"tenant": "acme", "kind": "mail", "attempt": 1, "request_id": "r-1"}
    for event in ("mailing", "by the standard library", "gave up"):
        (found,) = [line for line in lines if line["event"] == event]
        assert found.items() >= ours.items()
    (failed,) = [line for line in lines if line["event"].startswith("a job failed for good")]
    assert failed["level"] == "error"
    assert "ValueError: no such box" in failed["exception"]
    assert (failed["fastqueue.kind"], failed["fastqueue.job"], failed["fastqueue.tenant"]) == ("mail", 1, "acme")
    assert failed["fastqueue.request_id"] == "r-1"
    assert "ada" not in json.dumps(failed)

import signal
from pathlib import Path

import httpx

from tests.stories.stage import appears, serving


def test_a_mail_survives_the_crash_of_the_process_that_was_to_send_it(tmp_path: Path) -> None:
    with serving("tests.stories.shop:app", folder=tmp_path) as server:
        answer = httpx.post(f"{server.url}/register", params={"email": "ada@example.org"})
        assert answer.status_code == 200
        assert server.process.wait(timeout=30) == -signal.SIGKILL
    assert not (tmp_path / "outbox").exists()

    with serving("tests.stories.shop:app", folder=tmp_path):
        outbox = appears(tmp_path / "outbox")
    assert outbox.read_text() == "Welcome, ada@example.org!\n"

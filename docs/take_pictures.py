"""Goes through the example app as a visitor does, and takes pictures; called by scripts/screenshots and a test.

Arguments: the browser, and the folder of the pictures; docs/images by default.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
FOLDER = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "docs" / "images"
SHOWN = {"desk-register", "desk-mail", "desk-failed", "phone-account"}
WIDE, NARROW = (900, 620), (390, 700)
PASSWORD = "correct horse battery"  # noqa: S105 - of nobody


@contextmanager
def served() -> Iterator[str]:
    """The example app on a new database."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        environ = os.environ | {"DATABASE_URL": f"sqlite:///{folder}/app.db", "APP_URL": url}
        command = [ROOT / ".venv/bin/python", "-m", "uvicorn", "example_app.main:app", "--port", str(port)]
        process = subprocess.Popen(command, cwd=ROOT, env=environ, stderr=subprocess.DEVNULL)  # noqa: S603 - our own
        try:
            while True:
                with socket.socket() as line:
                    if line.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield url
        finally:
            process.terminate()
            process.wait()


def visit(page: Page, name: str) -> None:
    """Register, see the mail fail and send it again, read it, verify the address, sign in."""

    def picture(of: str) -> None:
        if (picture := f"{name}-{of}") in SHOWN:
            page.screenshot(path=FOLDER / f"{picture}.png", full_page=True)

    address = f"ada.{name}@example.org"
    page.goto("/outbox")
    page.get_by_role("button", name="Shut the outbox").click()
    page.get_by_role("link", name="Register").first.click()
    page.get_by_label("Email").fill(address)
    page.get_by_label("Password").fill(PASSWORD)
    picture("register")
    page.get_by_role("button", name="Register").click()
    page.get_by_role("link", name="outbox", exact=True).first.click()
    again = page.get_by_role("button", name="Send again")
    again.wait_for()
    picture("failed")
    page.get_by_role("button", name="Open the outbox").click()
    again.click()
    page.get_by_role("row", name=address).get_by_role("link").click()
    picture("mail")
    page.get_by_role("link", name="/verify?token=").click()
    page.get_by_role("button", name="Yes").click()
    page.locator("main").get_by_role("link", name="Sign in").click()
    page.get_by_label("Email").fill(address)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    picture("account")


with served() as url, sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=sys.argv[1], args=["--no-sandbox"])
    for name, (width, height) in {"desk": WIDE, "phone": NARROW}.items():
        context = browser.new_context(base_url=url, viewport={"width": width, "height": height})
        visit(context.new_page(), name)
    browser.close()

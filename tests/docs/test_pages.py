"""The programs on the pages run as they stand: the blocks of a page in their order, as one program.

Every page is taken up by itself. What it takes for granted, such as an app's models, is in `premises.py`, by name.
Blocks that begin with a prompt are tried by Sybil. A block marked `py` is another library's code, and has to compile.
"""

from __future__ import annotations

import ast
import asyncio
import doctest
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

from fastqueue import FastQueueError, Queue, errors
from fastqueue.starlette import CLOSE_BOUND
from fastqueue.worker import SETTLE_BOUND, TAIL
from tests.docs.premises import PREMISES, Base, Order, nothing, registering
from tests.servers.smtp import mail_server

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
STORIES = ROOT / "tests" / "stories"
PAGES = {str(page.relative_to(ROOT)): page for page in (*ROOT.glob("*.md"), *DOCS.rglob("*.md"))}

HAVE_A_TEST_OF_THEIR_OWN = {
    "README.md": "tests/house/test_readme.py",
    "docs/events.md": "test_events",
    "docs/mail.md": "test_mail",
    "docs/stories.md": "tests/stories",
    "docs/testing.md": "test_testing",
    "docs/transactions.md": "test_transactions",
}


def blocks(page: str, mark: str = "python") -> list[str]:
    text = (DOCS / page).read_text()
    found = re.findall(rf"^( *)```{mark}\b[^\n]*\n(.*?)^\1```$", text, re.DOTALL | re.MULTILINE)
    assert len(found) == len(re.findall(rf"```{mark}\b", text)), "a block that the tests do not see"
    return [textwrap.dedent(block) for _, block in found]


async def run(block: str, names: dict[str, Any]) -> None:
    program = compile(block, "a block", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    waiting = eval(program, names)
    if inspect.isawaitable(waiting):
        await waiting


async def run_page(programs: list[str], page: str) -> None:
    async with PREMISES.get(page, nothing)() as names:
        for program in programs:
            await run(program, names)


@pytest.mark.parametrize("page", sorted(PAGES.keys() - HAVE_A_TEST_OF_THEIR_OWN.keys()))
def test_the_programs_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number, foreign in enumerate(blocks(str(PAGES[page]), "py")):
        compile(foreign, f"{page}, foreign block {number}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    programs = blocks(str(PAGES[page]))
    if any(program.startswith(">>>") for program in programs):
        parser = PythonCodeBlockParser(doctest_optionflags=doctest.ELLIPSIS)
        examples = list(Sybil([parser], name=page).parse(PAGES[page]).examples())
        assert len(examples) >= len(programs)
        for example in examples:
            example.evaluate()
    else:
        asyncio.run(run_page(programs, page))


def test_no_page_has_a_test_of_its_own_that_is_gone() -> None:
    assert HAVE_A_TEST_OF_THEIR_OWN.keys() | PREMISES.keys() <= PAGES.keys()


def test_each_error_has_a_place_that_it_points_to() -> None:
    page = (DOCS / "errors.md").read_text()
    places = {f"errors.md#{heading.lower()}" for heading in re.findall(r"^### (\w+)$", page, re.MULTILINE)}
    raised: list[type[FastQueueError]] = [getattr(errors, name) for name in errors.__all__ if name != "FastQueueError"]
    assert places == {error("text").help for error in raised}

    class OfTheApp(errors.Permanent):
        pass

    assert OfTheApp("text").help == "errors.md#permanent"


def test_the_grace_periods_of_the_deployment_add_up() -> None:
    page = (DOCS / "running.md").read_text()

    def number(after: str) -> int:
        (found,) = re.findall(rf"{after}\D+(\d+)", page[page.index("```yaml") :])
        return int(found)

    before, requests, kill = number('sleep"'), number("graceful-shutdown"), number("terminationGracePeriodSeconds")
    away = SETTLE_BOUND + CLOSE_BOUND + 2
    assert before + requests + Queue("memory://").grace + TAIL + away < kill


@pytest.fixture
async def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[dict[str, Any]]:
    """The names of an app whose database is shop.db in the working folder."""
    monkeypatch.chdir(tmp_path)
    engine = create_async_engine("sqlite+aiosqlite:///shop.db")
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    async with AsyncSession(engine) as session:
        names: dict[str, Any] = {"session": session, "Order": Order}
        yield names
        queue: Queue = names["queue"]
        await queue.close()
    await engine.dispose()


async def test_events(app: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    setting_up, *rest = blocks("events.md")
    await run(setting_up, app)
    async with app["queue"]:
        for block in rest:
            await run(block, app)
        assert await app["queue"].drain() == 4
    assert capsys.readouterr().out.splitlines() == [
        "one less in stock for order 7",
        "a mail to the buyer of order 7",
        "one less in stock for order 8",
        "a mail to the buyer of order 8",
    ]


async def test_mail(app: dict[str, Any]) -> None:
    setting_up, sending = blocks("mail.md")
    with mail_server() as (server, url):
        app["key"] = Fernet.generate_key()
        await run(setting_up.replace("smtp://localhost:2525", url), app)
        async with app["queue"]:
            await run(sending, app)
            assert server.mails == []
            assert await app["queue"].drain() == 1
    (mail,) = server.mails
    assert mail["Subject"] == "Your order 7"
    assert [attached.get_filename() for attached in mail.iter_attachments()] == ["bill.pdf"]


def test_testing(tmp_path: Path) -> None:
    files = re.findall(r'```python title="(.*?)"\n(.*?)```', (DOCS / "testing.md").read_text(), re.DOTALL)
    assert len(files) == (DOCS / "testing.md").read_text().count("```python")
    for name, content in files:
        with (tmp_path / name).open("a") as file:
            file.write(content + "\n\n")
    settings = ("asyncio_mode=auto", "asyncio_default_fixture_loop_scope=function")
    words = [sys.executable, "-m", "pytest", "-q", "-W", "error", *(f"-o{setting}" for setting in settings)]
    # Of the store's checks a few will do: all of them are run on every store elsewhere.
    done = subprocess.run([*words, "-k", "not TestMyStore or b1"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_stories_are_shown_as_they_are_tested() -> None:
    page = (DOCS / "stories.md").read_text()
    shown = re.findall(r'^```python title="(.*?)"\n(.*?)^```$', page, re.DOTALL | re.MULTILINE)
    assert len(shown) == page.count("```python")
    assert {name for name, _ in shown} >= {str(story.relative_to(ROOT)) for story in STORIES.glob("test_*.py")}
    for name, block in shown:
        assert block == (ROOT / name).read_text()


async def test_transactions(postgres_url: str) -> None:
    async with registering(postgres_url) as names:
        for program in blocks("transactions.md"):
            await run(program, names)
        await names["db"].commit()
        assert await names["queue"].drain() == 2

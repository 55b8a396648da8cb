"""The programs on the pages run as they stand: the blocks of a page in their order, as one program."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from fastqueue import Queue
from tests.servers.smtp import mail_server

DOCS = Path(__file__).parents[2] / "docs"


class Base(DeclarativeBase):
    pass


class Order(Base):
    """What the pages take for granted that an app has."""

    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    state: Mapped[str]


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


async def run(block: str, names: dict[str, Any]) -> None:
    program = compile(block, "a block", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    waiting = eval(program, names)
    if inspect.isawaitable(waiting):
        await waiting


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

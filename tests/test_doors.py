"""What comes in by a door that others can reach is data wherever it is shown: never an order, a line, or a secret."""

from __future__ import annotations

import logging
import traceback

import pytest

from fastqueue import Queue
from fastqueue.errors import OptionError, StoreUnavailable
from fastqueue.job import NewJob
from fastqueue.stores import store_of
from tests.cli.command import NOW, Command, on_a_terminal, push, push_failed

ORDERS = "gone\n2026-01-01 ERROR all is lost \x1b[2J\x1b]0;title\x07\r\u202e\u2028\x9b31m"
MARKUP = "[bold red]alarm[/] [link=https://example.com]click[/link] :boom:"


def harmless(shown: str) -> bool:
    """Whether a terminal shows a text as it is: no order, no line of another's, nothing turned round."""
    lines = shown.split("\n")
    return all(line.replace("\t", "").isprintable() and not line.startswith("2026-01-01 ERROR") for line in lines)


@pytest.mark.parametrize("attempts", [1, 2], ids=["for good", "to be tried again"])
async def test_an_error_s_text_cannot_forge_a_line_of_the_log(caplog: pytest.LogCaptureFixture, attempts: int) -> None:
    caplog.set_level(logging.INFO, "fastqueue")
    queue = Queue("memory://")

    @queue.handle("work", attempts=attempts)
    async def work(text: str) -> None:
        raise ValueError(text)

    async with queue:
        await work.push(ORDERS.replace("\x00", ""))
        await queue.drain()

    told = [record.getMessage() for record in caplog.records if record.name == "fastqueue"]
    assert any("all is lost" in message for message in told)
    for message in told:
        assert message.isprintable()


async def test_a_limiter_s_and_an_observer_s_errors_cannot_either(caplog: pytest.LogCaptureFixture) -> None:
    class Breaks:
        async def ask(self, kind: str, /) -> float:
            raise OSError(ORDERS)

    def observe(ran: object) -> None:
        raise OSError(ORDERS)

    queue = Queue("memory://", observe=observe)

    @queue.handle("limited", rate=Breaks(), attempts=1)
    async def limited(number: int) -> None: ...

    @queue.handle("plain")
    async def plain(number: int) -> None: ...

    async with queue:
        await limited.push(1)
        await plain.push(1)
        await queue.drain()

    told = [record.getMessage() for record in caplog.records if record.name == "fastqueue"]
    assert told
    for message in told:
        assert message.isprintable()


@pytest.mark.parametrize("url", ["sqlite_url", "redis_url"])
async def test_what_others_wrote_into_the_store_is_shown_and_not_obeyed(
    url: str, request: pytest.FixtureRequest
) -> None:
    fastqueue = Command(request.getfixturevalue(url))
    kind = f"evil {ORDERS} {MARKUP}"
    await push(
        fastqueue.url, NewJob(kind=kind, payload=f'"{MARKUP}"', run_at=NOW, queue=kind, carried=f'{{"a": "{MARKUP}"}}')
    )
    await push_failed(fastqueue.url, f"{ORDERS} {MARKUP}", payload=f'"{MARKUP}"')

    for words in (["status"], ["jobs"], ["failed"], ["failed", "--group"], ["doctor"], ["schedules"]):
        answer = fastqueue(*words)
        assert harmless(answer.out + answer.err), words
        assert answer.out.count("alarm") == answer.out.count("[bold red]alarm[/]"), words
        shown = on_a_terminal(fastqueue, *words)
        assert [order for order in ("\x1b[2J", "\x1b]", "\u202e", "\x9b") if order in shown] == [], words


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://app:s3cret@127.0.0.1:9/app",
        "postgresql+asyncpg://app:s3cret@127.0.0.1:9/app?ssl=disable",
        "mysql://app:s3cret@127.0.0.1:9/app",
        "redis://app:s3cret@127.0.0.1:9/0",
        "rediss://:s3cret@127.0.0.1:9/0",
    ],
)
async def test_a_password_in_a_store_s_url_is_shown_by_nothing(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    queue = Queue(url)

    @queue.handle("greet")
    async def greet(name: str) -> None: ...

    said = [repr(queue), str(queue), repr(queue.store), str(queue.store)]
    try:
        await greet.push("Ada")
    except StoreUnavailable as error:
        said += [str(error), repr(error), "".join(traceback.format_exception(error))]
    said.append(repr(await queue.health()))
    await queue.close()
    for words in (["status"], ["doctor"]):
        answer = Command(url)(*words)
        said += [answer.out, answer.err]

    assert len(said) >= 12
    assert "s3cret" not in "\n".join([*said, caplog.text])


@pytest.mark.parametrize("scheme", ["postgresql", "mysql", "redis"])
@pytest.mark.parametrize(
    "rest", ["s3cret#x@host/0", "s3cret/x@host/0", "s3cret?x@host/0", "12345/x@host/0", "s3cret@[::1/0"]
)
def test_a_password_that_ends_a_url_s_host_is_refused_with_the_remedy_and_not_shown(scheme: str, rest: str) -> None:
    with pytest.raises(OptionError, match="%23, %2F") as refused:
        Queue(f"{scheme}://app:{rest}")
    said = "".join(traceback.format_exception_only(refused.value))
    assert "s3cret" not in said
    assert "12345" not in said
    assert refused.value.__suppress_context__, "the traceback would show the part that was read as a port"


async def test_a_stored_value_is_read_as_json_and_names_nothing_to_be_imported() -> None:
    store = store_of("memory://")
    queue = Queue(store)
    ran: list[object] = []

    @queue.handle("work")
    async def work(value: dict[str, str]) -> None:
        ran.append(value)

    named = '{"py/object": "os.system", "__class__": "subprocess.Popen", "!!python/object/apply": "os.abort"}'
    async with queue:
        await store.push([NewJob(kind="work", payload=named, run_at=0)], now=0)
        await store.push([NewJob(kind="work", payload="cos\nsystem\n(S'true'\ntR.", run_at=0)], now=0)
        await queue.drain()

    assert len(ran) == 1
    assert isinstance(ran[0], dict)

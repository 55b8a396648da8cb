"""Values on their way through each store: exactly as they went in, or refused at the push with nothing kept."""

from __future__ import annotations

from typing import Any

import pytest

from fastqueue import Queue
from fastqueue.errors import ValueRefused

KEPT: list[Any] = [
    3889108265204450030,
    2**53 + 1,
    2**63,
    -(2**63) - 1,
    10**30,
    -0.0,
    "quotes ' \" ` \\ % :name $1 {x} – 𝄞 \u2028",
    {"z": 1, "a": [None, True, 1.5, {"ü": "\t\n"}]},
]
REFUSED: list[tuple[Any, str]] = [
    ({"name": "a\u0000b"}, "name"),
    ({"k\u0000": 1}, "NUL"),
    ([[["a\u0000"]]], r"\[0\]\[0\]\[0\]"),
    ([1.0, float("nan")], r"\[1\]"),
    (float("inf"), "finite|inf|Infinity"),
    (-float("inf"), "finite|inf|Infinity"),
    ({"t": "\ud800"}, "t"),
    ({1: "a", "1": "b"}, "1"),
]


@pytest.fixture(params=["memory", "sqlite_url", "postgres_url", "mysql_url", "redis_url"])
def url(request: pytest.FixtureRequest) -> str:
    return "memory://" if request.param == "memory" else str(request.getfixturevalue(request.param))


async def test_values_come_back_exactly_or_are_refused_with_their_place_alike_on_every_store(url: str) -> None:
    queue = Queue(url)
    seen: list[Any] = []

    @queue.handle("any")
    async def handle(value: Any) -> None:
        seen.append(value)

    async with queue:
        for value, place in REFUSED:
            with pytest.raises(ValueRefused, match=place):
                await handle.push(value)
            with pytest.raises(ValueRefused, match=place):
                await handle.push_many(["fine", value])
        assert await queue.store.jobs(now=queue.clock.now()) == []
        for value in KEPT:
            await handle.push(value)
        await queue.drain()
    assert [repr(value) for value in seen] == [repr(value) for value in KEPT]


async def test_an_error_with_a_nul_in_its_text_is_kept_with_it_replaced_on_every_store(url: str) -> None:
    queue = Queue(url)

    @queue.handle("breaks", attempts=1)
    async def handle(value: int) -> None:
        raise ValueError("a\u0000b\ud800")

    async with queue:
        await handle.push(1)
        await queue.drain()
        (failed,) = await queue.failed()
        assert failed.error == "a\ufffdb\ufffd"

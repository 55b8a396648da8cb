from __future__ import annotations

import pytest

from fastqueue.finding import Finding, Level
from fastqueue.stores.redis import RedisStore
from tests.stores.jobs import there
from tests.stores.redis_jobs import connected, opened, own_server


async def inspected(store: RedisStore) -> dict[str, Finding]:
    return {found.about: found for found in await there(store.inspects).inspect()}


async def test_a_server_that_is_well_has_nothing_but_good_findings() -> None:
    with own_server("--appendonly", "yes", "--maxmemory", "100mb") as url:
        async with opened(url) as store:
            found = await inspected(store)
    assert {finding.level for finding in found.values()} == {Level.OK}, found
    assert set(found) == {"server", "durability", "memory", "connections"}
    assert (
        found["durability"].text
        == "an append-only file is kept, with appendfsync everysec: a crash may take the last second"
    )
    assert found["memory"].text.endswith("of 104.9 MB are used")


@pytest.mark.parametrize(
    ("options", "about", "text"),
    [
        (
            ["--appendonly", "no"],
            "durability",
            "a crash of the server takes the jobs of the last minutes, or all",
        ),
        (["--appendonly", "yes", "--appendfsync", "no"], "durability", "takes about the last half minute"),
        (["--maxmemory", "1mb"], "memory", "pushes are refused when it is full"),
        (["--maxclients", "9"], "connections", "there is no room for another process"),
    ],
)
async def test_what_costs_certainty_is_a_warning_with_a_remedy(options: list[str], about: str, text: str) -> None:
    with own_server(*options) as url:
        async with opened(url) as store:
            found = (await inspected(store))[about]
    assert (found.level, bool(found.remedy)) == (Level.WARNING, True)
    assert text in found.text


async def test_too_few_connections_for_one_process_are_an_error() -> None:
    with own_server("--maxclients", "8") as url:
        async with opened(url) as store:
            assert (await inspected(store))["connections"].level is Level.ERROR


async def test_what_may_not_be_asked_is_left_out() -> None:
    with own_server("--appendonly", "yes") as url:
        async with connected(url) as admin:
            for name, denied in (("one", ["-info"]), ("two", ["-config"])):
                await admin.acl_setuser(name, True, passwords="+pw", keys=["*"], commands=["+@all", *denied])
        async with opened(url.replace("//", "//one:pw@")) as store:
            assert (await inspected(store))["server"].remedy == "let the user ask INFO"
        async with opened(url.replace("//", "//two:pw@")) as store:
            assert (await inspected(store))["durability"].text == "an append-only file is kept"

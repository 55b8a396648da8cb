"""What a site under load loses while things are done to it: nothing; and what it does twice: what was in flight.

The long forms are run, and their figures printed, by scripts/faults.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from tests.faults.proxy import proxied
from tests.faults.scenarios import (
    ON_A_SERVER,
    ON_A_SERVER_OF_ITS_OWN,
    ON_ANY_STORE,
    ON_SQL_SERVERS,
    ON_SQLITE,
    Scenario,
)
from tests.faults.servers import server_of
from tests.faults.site import Site

pytestmark = pytest.mark.processes

SECONDS = [pytest.param(3, id="short"), pytest.param(60, id="long", marks=pytest.mark.long)]
SERVERS = ["postgres", "mysql", "redis"]


def name_of(given: Scenario | str) -> str:
    return given if isinstance(given, str) else given.__name__


def judge(site: Site) -> None:
    figures = site.figures()
    assert figures.lost == []
    assert figures.unexplained == []
    assert figures.run >= figures.pushed > 0
    assert figures.faults > 0


@pytest.mark.parametrize("seconds", SECONDS)
@pytest.mark.parametrize(
    ("store", "scenario"),
    [
        *product(["sqlite", *SERVERS], ON_ANY_STORE),
        *product(["sqlite"], ON_SQLITE),
        *product(["postgres", "mysql"], ON_SQL_SERVERS),
    ],
    ids=name_of,
)
async def test_nothing_is_lost_and_only_what_was_in_flight_is_doubled_by(
    scenario: Scenario, store: str, seconds: float, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    site = Site(request.getfixturevalue(f"{store}_url"), tmp_path)
    async with site.under_load():
        await scenario(site, seconds)
    judge(site)


@pytest.mark.parametrize("seconds", SECONDS)
@pytest.mark.parametrize("store", SERVERS)
@pytest.mark.parametrize("scenario", ON_A_SERVER, ids=name_of)
async def test_nothing_is_lost_on_a_line_that_has(
    scenario: Scenario, store: str, seconds: float, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server: str = request.getfixturevalue(f"{store}_url")
    async with proxied(server) as line:
        site = Site(line.url, tmp_path, line=line)
        async with site.under_load():
            await scenario(site, seconds)
    judge(site)


@pytest.mark.parametrize("seconds", SECONDS)
@pytest.mark.parametrize("store", SERVERS)
@pytest.mark.parametrize("scenario", ON_A_SERVER_OF_ITS_OWN, ids=name_of)
async def test_nothing_that_was_acknowledged_is_lost_when_the_server_itself_is(
    scenario: Scenario, store: str, seconds: float, tmp_path: Path
) -> None:
    with server_of(store) as server:
        site = Site(server.url, tmp_path, server=server)
        async with site.under_load():
            await scenario(site, seconds)
    judge(site)

"""The scenarios for as long as you like, and what came of each, as a table or as JSON; run by scripts/faults."""

from __future__ import annotations

import asyncio
import json
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tests.faults.ledger import Figures
from tests.faults.proxy import proxied
from tests.faults.scenarios import ON_A_SERVER, Scenario, scenarios_on
from tests.faults.servers import Server, server_of
from tests.faults.site import Site

STORES = ["sqlite", "postgres", "mysql", "redis"]
HEADINGS = [
    "store",
    "what is done",
    "faults",
    "pushed",
    "refused",
    "run",
    "lost",
    "doubled",
    "longest stall",
    "back in",
]


async def play(scenario: Scenario, server: Server | None, folder: Path, seconds: float) -> Figures:
    """One scenario on a store that is empty."""
    if server is None:
        site = Site(f"sqlite:///{folder / 'jobs.db'}", folder)
    elif scenario in ON_A_SERVER:
        async with proxied(server.url) as line:
            return await load(scenario, Site(line.url, folder, line=line), seconds)
    else:
        site = Site(server.url, folder, server=server)
    return await load(scenario, site, seconds)


async def load(scenario: Scenario, site: Site, seconds: float) -> Figures:
    """One scenario on a site."""
    async with site.under_load():
        await scenario(site, seconds)
    return site.figures()


def row(store: str, scenario: Scenario, figures: Figures) -> str:
    """A line of the table."""
    doubled = f"{len(figures.doubled)}"
    if figures.unexplained:
        doubled += f", {len(figures.unexplained)} of them not in flight"
    cells = [store, scenario.__name__, figures.faults, figures.pushed, figures.refused, figures.run]
    return "| " + " | ".join(map(str, [*cells, len(figures.lost), doubled, *times(figures)])) + " |"


def times(figures: Figures) -> tuple[str, str]:
    """The longest stall, and the longest wait after a fault."""
    return f"{figures.stall:.1f} s", f"{figures.back:.1f} s"


def main(
    seconds: Annotated[float, typer.Option(help="How long things are done to the site, for each scenario.")] = 45,
    store: Annotated[list[str] | None, typer.Option(help="Only on this store; may be given again.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Only this scenario; may be given again.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="An object for each scenario, one a line.")] = False,
) -> None:
    """Do things to a site under load; exit 1 when a job was lost, or ran twice that was not in flight."""
    bad = False
    if not as_json:
        print("| " + " | ".join(HEADINGS) + " |\n|" + " --- |" * len(HEADINGS))
    for name in store or STORES:
        for scenario in scenarios_on(name):
            if only and scenario.__name__ not in only:
                continue
            with ExitStack() as around:
                server = None if name == "sqlite" else around.enter_context(server_of(name))
                folder = Path(around.enter_context(tempfile.TemporaryDirectory()))
                figures = asyncio.run(play(scenario, server, folder, seconds))
            bad = bad or bool(figures.lost or figures.unexplained)
            told = {"store": name, "scenario": scenario.__name__, "seconds": seconds, **asdict(figures)}
            print(json.dumps(told) if as_json else row(name, scenario, figures), flush=True)
    raise typer.Exit(int(bad))


if __name__ == "__main__":
    typer.run(main)

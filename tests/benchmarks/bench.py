"""Every measure of every contender in one run on one machine, with what the bare database does beside it.

`scripts/bench` runs it. Machines are noisy: read the ratios, and the raw loops' own spread, before any figure.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tests.benchmarks import goals
from tests.benchmarks.case import Row
from tests.benchmarks.contender import Contender, Ours
from tests.benchmarks.peers import PEERS
from tests.benchmarks.plot import plot
from tests.benchmarks.raw import RAW
from tests.servers import mysql, postgres, redis

CONTENDERS = {
    "postgres": ("raw", "fastqueue", "pgqueuer", "procrastinate", "oban", "awa-pg", "soniq", "chancy"),
    "sqlite": ("raw", "fastqueue", "huey"),
    "redis": ("fastqueue", "saq", "arq", "taskiq", "streaq", "pydocket", "celery"),
    "mysql": ("raw", "fastqueue"),
}

SHARES = {"raw": 1, "fastqueue": 1, "pgqueuer": 1, "celery": 0.4, "arq": 0.02, "pydocket": 0.02, "chancy": 0.02}
"""Which part of the jobs a contender gets, so that its measures last, and end; a tenth by default."""

POLLING = ("arq", "celery", "chancy", "pydocket", "soniq")
"""Who has no pick-up to speak of by default: they poll, or their worker is another process."""

TIMEOUT = 300
"""Seconds that one measure may take; then it is left out, and said so."""


class Asked(NamedTuple):
    """One measure of one contender."""

    who: str
    store: str
    measure: str
    jobs: int
    limit: str = "none"
    waiting: int = 0


def main() -> None:
    """Measure, print a table, and write what was asked for."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="fewer jobs, once each, no growth: three minutes, not twenty"
    )
    parser.add_argument("--only", metavar="WORD", help="only where contender, store or measure contains it")
    parser.add_argument("--rounds", type=int, help="how often; the median counts (3, or 1 with --quick)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write versions, settings and every figure there")
    parser.add_argument(
        "--markdown", metavar="FILE", type=Path, help="write the table there, as docs/performance.md has it"
    )
    parser.add_argument("--plot", metavar="FILE", type=Path, help="draw the pushes and drains there, as SVG")
    options = parser.parse_args()
    asked = [one for one in plan(quick=options.quick) if options.only is None or options.only in " ".join(one[:3])]
    rows: list[Row] = []
    missing: list[str] = []
    with suppress(KeyboardInterrupt):  # what was measured by then is shown
        for _ in range(options.rounds or (1 if options.quick else 3)):
            for one in asked:
                try:
                    rows += run(one)
                except Exception as error:
                    missing.append(f"{' '.join(one[:3])}: {said(error)}")
                    print(f"  left out: {missing[-1]}", file=sys.stderr)
    found = table(rows)
    show(found)
    print(goals.markdown(found), *(f"left out: {one}" for one in missing), sep="\n")
    report = {"machine": machine(), "versions": versions(), "settings": settings(), "rows": found, "runs": rows}
    if options.json:
        options.json.write_text(json.dumps(report | {"left out": missing}, indent=1, ensure_ascii=False) + "\n")
    if options.markdown:
        options.markdown.write_text(f"{goals.markdown(found)}\n{markdown(found)}")
    if options.plot:
        options.plot.write_text(plot(found))


def plan(*, quick: bool) -> Iterator[Asked]:
    """What is measured; raw and contenders take turns, so that a noisy minute meets both."""
    jobs = 10_000 if quick else 30_000
    for measure in ("push", "drain", "tuned"):
        for store, contenders in CONTENDERS.items():
            for who in contenders:
                yield Asked(who, store, measure, int(jobs * SHARES.get(who, 0.1)))
    yield Asked("fastqueue", "memory", "drain", jobs)
    for store in ("postgres", "redis"):
        for who in CONTENDERS[store]:
            if who not in ("raw", *POLLING):  # the raw loop has no way to wait
                yield Asked(who, store, "pickup", 1)
    yield Asked("fastqueue", "postgres", "committed", 1)
    for store in ("postgres", "sqlite"):
        yield Asked("fastqueue", store, "web", 100_000)
    yield Asked("fastqueue", "postgres", "tenth", jobs, limit="tenth")
    yield Asked("fastqueue", "postgres", "keys", jobs, limit="keys")
    yield Asked("fastqueue", "postgres", "snapshot", jobs)
    yield Asked("raw", "postgres", "snapshot", jobs)
    for waiting in (1_000,) if quick else (1_000, 100_000, 1_000_000):
        yield Asked("fastqueue", "postgres", "growth", jobs, waiting=waiting)
    if not quick:
        yield Asked("fastqueue", "postgres", "failures", jobs, waiting=1_000_000)
    yield Asked("fastqueue", "postgres", "heads", 0, waiting=5_000 if quick else 500_000)
    yield Asked("fastqueue", "postgres", "idle", 0)


def run(asked: Asked) -> list[Row]:
    """One measure in a process of its own, on an empty database."""
    with database(asked.store) as url:
        if url is None:
            return []
        command = [sys.executable, "-m", "tests.benchmarks.case", json.dumps({**asked._asdict(), "url": url})]
        print(f"{asked.who} on {asked.store}: {asked.measure}", file=sys.stderr)
        # A group of its own, so that nothing it has started outlives it.
        case = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            out, err = case.communicate(timeout=TIMEOUT)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(case.pid, signal.SIGKILL)
        if case.returncode:
            raise subprocess.CalledProcessError(case.returncode, asked.measure, out, err)
        return [Row(*row) for row in json.loads(out.splitlines()[-1])]


def said(error: Exception) -> str:
    """Why a measure is left out, in a line."""
    told = (getattr(error, "stderr", None) or "").strip().splitlines()[-1:]
    return " ".join([type(error).__name__, *(told or [str(error)])])


@contextmanager
def database(store: str) -> Generator[str | None]:
    """The URL of an empty database; None: there is no server, which is said."""
    if store == "memory":
        yield "memory://"
    elif store == "sqlite":
        # In the working tree's own file system: a temporary folder may be in memory, where a sync costs nothing.
        with tempfile.TemporaryDirectory(dir=".", prefix="bench-") as folder:
            yield f"sqlite:///{folder}/jobs.db"
    else:
        module = {"postgres": postgres, "redis": redis, "mysql": mysql}[store]
        server = os.environ.get(f"FASTQUEUE_BENCH_{store.upper()}") or module.running()
        if server is None:
            print(f"no {store} runs; FASTQUEUE_BENCH_{store.upper()} names one", file=sys.stderr)
            yield None
            return
        with module.fresh_database(server) as url:
            yield url


def table(rows: list[Row]) -> list[dict[str, Any]]:
    """The median of each figure, with its ratio to the raw loop and to the best peer on the same store."""
    figures: dict[tuple[str, str, str, str], list[float]] = {}
    for row in rows:
        figures.setdefault((row.measure, row.store, row.who, row.unit), []).append(row.value)
    middle = {key: median(values) for key, values in figures.items()}
    found: list[dict[str, Any]] = []
    for (measure, store, who, unit), value in middle.items():
        spread = figures[measure, store, who, unit]
        line: dict[str, Any] = {"store": store, "measure": measure, "who": who, "unit": unit, "value": value}
        line |= {"lowest": min(spread), "highest": max(spread), "rounds": len(spread)}
        raw = middle.get((_raw_of(measure), store, "raw", unit))
        peers = [other for key, other in middle.items() if key[0] == measure and key[1] == store and key[2] in PEERS]
        line["to raw"] = value / raw if raw and who != "raw" else None
        # No ratio to nothing: a peer's job may run before its push returns.
        if who == "fastqueue" and (best := (max if unit == "jobs/s" else min)(peers, default=0.0)):
            line["to best peer"] = value / best
        found.append(line)
    return sorted(found, key=lambda line: (line["store"], line["measure"], line["who"] != "raw", -line["value"]))


def _raw_of(measure: str) -> str:
    """The raw loop to compare with: that of its own, or the drain."""
    own = ("push, one caller", "push, ten callers", "push, 1,000 in a call", "drain, tuned")
    same = measure in own or not measure.startswith("drain, ") or ":" in measure
    return measure if same else "drain, defaults"


def show(found: list[dict[str, Any]]) -> None:
    """Print the table."""
    print(f"{'store':<10}{'measure':<42}{'who':<15}{'':>16}{'spread':>20}{'to raw':>8}{'to best peer':>14}")
    for line in found:
        spread = f"{_figure(line['lowest'])} – {_figure(line['highest'])}" if line["rounds"] > 1 else ""
        ratios = [f"{line[name]:.2f}" if line.get(name) else "" for name in ("to raw", "to best peer")]
        value = f"{_figure(line['value'])} {line['unit']}"
        print(
            f"{line['store']:<10}{line['measure']:<42}{line['who']:<15}{value:>16}"
            f"{spread:>20}{ratios[0]:>8}{ratios[1]:>14}"
        )


def markdown(found: list[dict[str, Any]]) -> str:
    """The table, for a page."""
    lines = ["| store | measure | who | figure | lowest – highest | to raw | to best peer |", "| --- " * 7 + "|"]
    for line in found:
        low, value, high = (_figure(line[name]) for name in ("lowest", "value", "highest"))
        ratios = (f"{line[name]:.2f}" if line.get(name) else "" for name in ("to raw", "to best peer"))
        cells = (line["store"], line["measure"], line["who"], f"{value} {line['unit']}", f"{low} – {high}", *ratios)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def versions() -> dict[str, str]:
    """What was measured."""
    found = {"Python": platform.python_version()}
    for package in ("asyncpg", "psycopg", "redis", "pydantic", *PEERS, "taskiq-redis"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def settings() -> dict[str, str]:
    """What "tuned" sets; everything else is as it comes."""
    contenders: dict[str, type[Contender]] = {"raw": RAW["postgres"], "fastqueue": Ours, **PEERS}
    return {name: contender.tuned for name, contender in contenders.items()}


def machine() -> dict[str, Any]:
    """Where it ran, and how busy that was."""
    return {"system": platform.system(), "cores": os.cpu_count(), "load at the end": os.getloadavg()[0]}


if __name__ == "__main__":
    main()

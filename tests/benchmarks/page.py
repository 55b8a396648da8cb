"""Writes what `scripts/bench --json` measured into docs/performance.md: `scripts/bench page FILE`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.benchmarks import bench, goals
from tests.benchmarks.plot import plot

__all__ = ["page"]

DOCS = Path(__file__).parents[2] / "docs"
NAMES = {"goals": "What it is to reach", "figures": "Every figure"}


def page(text: str, report: dict[str, Any]) -> str:
    """A page with its two tables as a run has them; each is between its heading and the next line that ends it."""
    rows = report["rows"]
    tables = {"goals": goals.markdown(rows), "figures": bench.markdown(rows)}
    for name, heading in NAMES.items():
        before, rest = text.split(f"### {heading}\n", 1)
        after = rest[rest.index("\n<!-- end -->") :]
        text = f"{before}### {heading}\n\n{tables[name].rstrip()}\n{after}"
    return text


def main() -> None:
    report = json.loads(Path(sys.argv[1]).read_text())
    place = DOCS / "performance.md"
    place.write_text(page(place.read_text(), report))
    (DOCS / "performance.svg").write_text(plot(report["rows"]))


if __name__ == "__main__":
    main()

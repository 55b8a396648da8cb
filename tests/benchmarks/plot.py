"""A plot of the pushes and drains as SVG, drawn by hand: bars on one scale for each measure."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

__all__ = ["plot"]

MEASURES = ("push, one caller", "push, ten callers", "push, 1,000 in a call", "drain, defaults", "drain, tuned")
COLOURS = {"raw": "#9aa0a6", "fastqueue": "#009485"}
WIDTH, BAR, NAMES = 760, 18, 230


def plot(found: list[dict[str, Any]]) -> str:
    """The picture of a table of `bench.table`."""
    parts: list[str] = []
    y = 10
    for measure in MEASURES:
        lines = [line for line in found if line["measure"] == measure and line["store"] != "memory"]
        if not lines:
            continue
        y += 14
        parts.append(f'<text x="10" y="{y}" font-weight="bold">{escape(measure)}, jobs a second</text>')
        y += 8
        longest = max(line["value"] for line in lines)
        for line in lines:
            width = (WIDTH - NAMES - 90) * line["value"] / longest
            middle = y + BAR * 0.7
            name, colour = f"{line['who']} on {line['store']}", COLOURS.get(line["who"], "#c7b299")
            parts.append(f'<text x="{NAMES - 8}" y="{middle}" text-anchor="end">{escape(name)}</text>')
            parts.append(f'<rect x="{NAMES}" y="{y + 2}" width="{width:.1f}" height="{BAR - 4}" fill="{colour}"/>')
            parts.append(f'<text x="{NAMES + width + 6:.1f}" y="{middle}">{line["value"]:,.0f}</text>')
            y += BAR
        y += 10
    style = "font-family: sans-serif; font-size: 12px"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}" '
        f'style="{style}" fill="#5f6368">\n' + "\n".join(parts) + "\n</svg>\n"
    )

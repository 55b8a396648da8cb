"""`fastqueue check`: whether the code as it is can read every job that is kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import typer

from fastqueue.cli._app import App, ask, jobs_of, load_queue
from fastqueue.cli._show import AsJSON, count, listing
from fastqueue.errors import Mismatch
from fastqueue.job import StoredJob
from fastqueue.kind import Kind
from fastqueue.queue import Queue

__all__ = ["check"]

_NAMED = 5


@dataclass(slots=True)
class _Unfit:
    """Jobs of a kind that do not fit, for one reason."""

    ids: list[int] = field(default_factory=list[int])
    states: Counter[str] = field(default_factory=Counter[str])


def check(app: App = None, as_json: AsJSON = False) -> None:
    """Whether the code as it is can read every job that is kept; for use before a deploy. Exit status 1: it cannot."""
    kinds = load_queue(app).kinds

    async def look(queue: Queue) -> tuple[Counter[str], dict[tuple[str, str], _Unfit]]:
        read: Counter[str] = Counter()
        found: dict[tuple[str, str], _Unfit] = {}
        now = queue.clock.now()
        async for job in jobs_of(queue):
            read[job.kind] += 1
            if reason := _reason(job, kinds.get(job.kind)):
                unfit = found.setdefault((job.kind, reason), _Unfit())
                unfit.states[job.state(now)] += 1
                if len(unfit.ids) < _NAMED:
                    unfit.ids.append(job.id)
        return read, found

    read, found = ask(app, look)
    rows = [
        {
            "id": unfit.ids[0],
            "kind": kind,
            "jobs": unfit.states.total(),
            "of": read[kind],
            "first": unfit.ids if as_json else ", ".join(map(str, unfit.ids)),
            "states": unfit.states
            if as_json
            else ", ".join(f"{number} {state}" for state, number in unfit.states.items()),
            "reason": reason,
        }
        for (kind, reason), unfit in found.items()
    ]
    total = f"{count(read.total(), 'job')} of {count(len(read), 'kind')}"
    listing(rows, as_json=as_json, none=f"Every job fits: {total}.")
    if rows:
        raise typer.Exit(1)


def _reason(job: StoredJob, kind: Kind[Any] | None) -> str | None:
    """Why a job does not fit; None: it does."""
    if kind is None:
        return "the queue has no such kind"
    try:
        kind.codec.decode(job.payload)
    except Mismatch as error:
        return str(error)
    return None

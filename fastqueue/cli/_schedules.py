"""`fastqueue schedules`: when each schedule comes round next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated

import typer

from fastqueue._zones import load_zone
from fastqueue.cli._app import App, load_queue
from fastqueue.cli._show import AsJSON, json_list, plain, second
from fastqueue.clock import as_datetime
from fastqueue.schedule import Cron, Schedule

__all__ = ["schedules"]


@dataclass(frozen=True, slots=True)
class _Run:
    """A run to come: its moment in UTC and in its schedule's zone, and whether that has changed its offset."""

    at: datetime
    there: datetime
    changed: bool


def schedules(
    app: App = None,
    runs: Annotated[int, typer.Option("--runs", "-n", min=1, max=1000, help="How many runs of each.")] = 5,
    as_json: AsJSON = False,
) -> None:
    """Each schedule with its next runs, in its own zone and in UTC. The store is not asked."""
    queue = load_queue(app)
    now = as_datetime(queue.clock.now())
    found = [(kind, scheduled, list(_runs(scheduled.when, now, runs))) for kind, scheduled in queue.schedules]
    if as_json:
        return json_list(
            [
                {
                    "id": scheduled.name,
                    "kind": kind.name,
                    "when": str(scheduled.when),
                    "zone": _zone(scheduled.when),
                    "missed": scheduled.missed,
                    "runs": [
                        {"at": run.at.isoformat(), "there": run.there.isoformat(), "offset_changed": run.changed}
                        for run in coming
                    ],
                }
                for kind, scheduled, coming in found
            ]
        )
    if not found:
        typer.echo("The queue has no schedules.")
    for kind, scheduled, coming in found:
        typer.echo(plain(f"{scheduled.name}  {kind.name}  {scheduled.when}"))
        for run in coming:
            change = "  (the zone's offset has changed)" if run.changed else ""
            typer.echo(f"  {run.there:%a %Y-%m-%d %H:%M:%S %z}  =  {second(run.at)}{change}")
        if not coming:
            typer.echo("  never again")
    return None


def _runs(when: Schedule, after: datetime, number: int) -> Iterator[_Run]:
    zone = load_zone(_zone(when))
    offset: timedelta | None = None
    for _ in range(number):
        at = when.next(after)
        if at is None:
            return
        instant = at.astimezone(UTC).replace(tzinfo=None)
        before, offset = offset, zone.reading(instant) - instant
        yield _Run(at, at.astimezone(timezone(offset)), before is not None and offset != before)
        after = at


def _zone(when: Schedule) -> str:
    return when.tz if isinstance(when, Cron) else "UTC"

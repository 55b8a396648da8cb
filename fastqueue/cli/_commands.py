"""All commands together."""

from __future__ import annotations

import typer

from fastqueue.cli import (
    _check,
    _doctor,
    _jobs,
    _move,
    _new,
    _prune,
    _push,
    _retry,
    _schedules,
    _status,
    _tables,
    _work,
)

__all__ = ["app"]

app = typer.Typer(
    name="fastqueue",
    help="Look after a queue of jobs. Exit status: 0 done; 1 some ids unknown, or the store failed; 2 usage.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (
    _work.work,
    _status.status,
    _push.push,
    _jobs.failed,
    _jobs.jobs,
    _retry.retry,
    _retry.forget,
    _schedules.schedules,
    _check.check,
    _doctor.doctor,
    _prune.prune,
    _tables.migrate,
    _move.move,
):
    app.command()(command)
app.command()(_tables.sql)
app.add_typer(_new.new, name="new")

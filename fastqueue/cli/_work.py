"""`fastqueue work`: processes that only run jobs."""

from __future__ import annotations

import logging
import sys
from dataclasses import replace
from typing import Annotated

import typer

from fastqueue.cli._app import App, fail, finished, load_queue
from fastqueue.cli._processes import Processes
from fastqueue.cli._progress import Progress
from fastqueue.cli._show import count
from fastqueue.cli._worker import line_to_parent, work_until_told
from fastqueue.codec import check_name
from fastqueue.environ import QueueSettings
from fastqueue.errors import OptionError

__all__ = ["work"]

log = logging.getLogger("fastqueue")


def work(
    app: App = None,
    queues: Annotated[
        str | None, typer.Option("--queue", metavar="A,B", help="Only these queues, the first before the second.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", min=1, help="Jobs at once in each process.")
    ] = None,
    processes: Annotated[
        int, typer.Option("--processes", min=1, help="Work in so many; one that crashes is started again.")
    ] = 1,
    once: Annotated[bool, typer.Option("--once", help="Run what is due now, one by one, then end.")] = False,
    stop_when_empty: Annotated[bool, typer.Option("--stop-when-empty", help="End when nothing is due.")] = False,
    is_child: Annotated[bool, typer.Option("--child", hidden=True)] = False,
) -> None:
    """Run jobs until SIGTERM or Ctrl-C; running jobs are given time to end. A second signal stops at once."""
    if once and stop_when_empty:
        fail(2, "--once and --stop-when-empty: give one of them")
    if once and processes > 1:
        fail(2, "--once runs one job at a time: leave out --processes")
    parent = line_to_parent() if is_child else None
    settings = _settings(queues, concurrency)
    if processes > 1:
        _log()
        words = [sys.executable, "-m", "fastqueue.cli", "work", "--child"]
        given = {"--app": app, "--queue": queues, "--concurrency": concurrency}
        words += [f"{option}={value}" for option, value in given.items() if value is not None]
        words += ["--stop-when-empty"] * stop_when_empty
        raise typer.Exit(finished(Processes(words, processes, to_an_end=stop_when_empty).work()))
    queue = load_queue(app)
    if queue.store.name in ("memory", "inline"):
        fail(2, f"the {queue.store.name} store keeps nothing for other processes: its jobs run in the app's own")
    queue.workers = settings.workers or queue.workers
    queue.queues = queue.queues if settings.queues is None else list(settings.queues)
    queue.grace = queue.grace if settings.grace is None else settings.grace
    progress = Progress(queue)
    with progress.shown(alone=not is_child):
        _log()
        log.info("working: %s at once, queues: %s", count(queue.workers, "job"), ", ".join(queue.queues or ["all"]))
        finished(work_until_told(queue, once=once, stop_when_empty=stop_when_empty, parent=parent))
    log.info("stopped; runs: %s", progress)


def _log() -> None:
    """Log to the standard error, unless the app has set up its own."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(levelname)s %(message)s")


def _settings(queues: str | None, concurrency: int | None) -> QueueSettings:
    """What the options say, or else the environment."""
    try:
        settings = QueueSettings.from_environ()
    except OptionError as error:
        fail(2, str(error))
    try:
        names = None if queues is None else tuple(check_name("queue", name.strip()) for name in queues.split(","))
    except OptionError as error:
        fail(2, f"--queue {queues}: {error}")
    return replace(settings, workers=concurrency or settings.workers, queues=names or settings.queues)

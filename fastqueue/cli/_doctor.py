"""`fastqueue doctor`: what is wrong around a queue, and what to do about it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import typer

from fastqueue._zones import zone_data_version
from fastqueue.cli._app import App, finished, jobs_of, load_queue
from fastqueue.cli._show import AsJSON, count, listing
from fastqueue.codec import error_text
from fastqueue.errors import FastQueueError, Mismatch, SchemaTooNew
from fastqueue.finding import Finding, Level
from fastqueue.job import Moment, StoredJob
from fastqueue.kind import Kind
from fastqueue.queue import Queue
from fastqueue.worker.beside import FAILED_KEPT_MS, PRUNE_EVERY

__all__ = ["doctor", "examined"]

SKEW_MS = 1_000
"""How far this machine's clock may be from the store's."""

LATE_MS = 60_000
"""How long a due job may wait before it is asked who runs it."""

READ = 10_000
"""So many jobs are read, the oldest: enough to find what an old version left behind."""


def doctor(app: App = None, as_json: AsJSON = False) -> None:
    """What is wrong around the queue, and what to do about it. Exit status 1: something is."""
    findings = finished(examined(load_queue(app)))
    rows = [
        {"id": found.about, "level": found.level.value, "finding": found.text, "remedy": found.remedy}
        for found in findings
    ]
    listing(rows, as_json=as_json, none="")
    if any(found.level is Level.ERROR for found in findings):
        raise typer.Exit(1)


async def examined(queue: Queue) -> list[Finding]:
    """Look at everything around a queue, and close it."""
    try:
        return [found async for found in _findings(queue)]
    finally:
        await queue.close()


async def _findings(queue: Queue) -> AsyncIterator[Finding]:
    yield _zones()
    try:
        tables = await _tables(queue)
        yield tables
        if tables.level is Level.ERROR:
            return
        await queue.ready()
        yield Finding("store", f"{queue.store!r} answers")
        if queue.store.inspects is not None:
            for found in await queue.store.inspects.inspect():
                yield found
        yield await _clock(queue)
        for found in await _lines(queue):
            yield found
        for found in await _jobs(queue):
            yield found
    except (FastQueueError, OSError) as error:
        remedy = (
            "see that it runs, that this machine reaches it, and that URL, account and rights are as they should be"
        )
        yield Finding.error("store", error_text(error), remedy)


def _zones() -> Finding:
    version = zone_data_version()
    if version == "none":
        return Finding.warning("zone data", "there is none, so schedules know UTC only", "install the package tzdata")
    return Finding("zone data", version)


async def _tables(queue: Queue) -> Finding:
    migrates = queue.store.migrates
    if migrates is None:
        return Finding("tables", f"the {queue.store.name} store has none")
    try:
        current = await migrates.current()
    except SchemaTooNew as error:
        return Finding.error("tables", error_text(error), "install the newer version of fastqueue here too")
    if current > migrates.latest:
        return Finding.error(
            "tables",
            f"they are at migration {current}, and this version of fastqueue knows {migrates.latest}",
            "install the newer version of fastqueue here too",
        )
    if current < migrates.latest:
        what = f"they are at migration {current} of {migrates.latest}" if current else "they are not there"
        return Finding.error("tables", what, "run `fastqueue migrate`, or start the app if its store may migrate")
    return Finding("tables", f"they are at migration {current}, the latest")


async def _clock(queue: Queue) -> Finding:
    if queue.store.time is None:
        return Finding("clock", "the store has none: the processes on this machine share its own")
    before = queue.clock.now()
    theirs = await queue.store.time.now()
    ahead = (before + queue.clock.now()) // 2 - theirs
    text = f"{'the app' if queue.clock.source else 'this machine'}'s clock is {ahead / 1000:+.1f} s from the store's"
    if abs(ahead) <= SKEW_MS:
        return Finding("clock", text)
    if queue.clock.source is not None:
        return Finding.warning("clock", f"{text}: jobs start so much early or late", "leave out Queue(clock=...)")
    return Finding.warning("clock", f"{text}: the store's is used", "set both machines by NTP")


async def _lines(queue: Queue) -> list[Finding]:
    """What waits, from the heads of the lines."""
    now, handled = queue.clock.now(), {kind.name for kind in queue.kinds.values() if kind.handler is not None}
    due = [lane for lane in await queue.store.lanes() if lane.head <= now]
    unknown = sorted({lane.kind for lane in due} - handled)
    late = [lane for lane in due if lane.kind in handled and now - lane.head > LATE_MS]
    findings: list[Finding] = []
    if unknown:
        names = ", ".join(map(repr, unknown))
        remedy = "give each a handler, here or in another process, or forget its jobs"
        findings.append(Finding.warning("kinds", f"jobs wait that this app has no handler for: {names}", remedy))
    if late:
        oldest = min(late, key=lambda lane: lane.head)
        findings.append(
            Finding.warning(
                "waiting",
                f"a job of kind {oldest.kind!r} in queue {oldest.queue!r} has been due for "
                f"{(now - oldest.head) // 1000} s",
                "see that a process serves this queue; add workers or processes if they are all busy",
            )
        )
    return findings or [Finding("waiting", "no due job is left lying")]


async def _jobs(queue: Queue) -> list[Finding]:
    """What the jobs themselves tell."""
    kinds, kept_since = queue.kinds, queue.clock.now() - FAILED_KEPT_MS - int(2000 * PRUNE_EVERY)
    unfit: dict[str, list[int]] = {}
    overdue = read = 0
    async for job in jobs_of(queue):
        if job.failed_ms is None and (reason := _unfit(job, kinds.get(job.kind))):
            unfit.setdefault(reason, []).append(job.id)
        overdue += _is_overdue(job, kept_since)
        read += 1
        if read == READ:
            break
    findings = [
        Finding.error(
            "values",
            f"{reason} ({count(len(ids), 'job')}, the first {ids[0]})",
            "let the handler take what it took before, or forget the jobs",
        )
        for reason, ids in unfit.items()
    ]
    if not unfit:
        findings.append(Finding("values", f"all fit their handlers ({count(read, 'job')} read)"))
    if overdue:
        text = f"{count(overdue, 'job')} failed more than 30 days ago, and no worker has pruned"
        findings.append(Finding.warning("pruning", text, "see that a process runs workers, or run `fastqueue prune`"))
    else:
        findings.append(Finding("pruning", "failed jobs are kept for 30 days; each process that works prunes hourly"))
    return findings


def _unfit(job: StoredJob, kind: Kind[Any] | None) -> str | None:
    """Why a job's value cannot be read; None: it can, or nobody here would."""
    if kind is None or kind.handler is None:
        return None
    try:
        kind.codec.decode(job.payload)
    except Mismatch as error:
        return error_text(error)
    return None


def _is_overdue(job: StoredJob, kept_since: Moment) -> bool:
    return job.failed_ms is not None and job.failed_ms < kept_since

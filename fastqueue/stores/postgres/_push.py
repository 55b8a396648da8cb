"""The push: one statement, whatever is pushed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from fastqueue.job import Moment, NewJob, Pushed
from fastqueue.stores._rows import new_job_values
from fastqueue.stores._sql import Call, Statements, Steps

__all__ = ["push_steps"]

V = TypeVar("V")

SILENT: Mapping[str, str | None] = {"channel": None, "tag": ""}


def push_steps(
    statements: Statements, jobs: Sequence[NewJob], now: Moment, notice: Mapping[str, str | None] = SILENT
) -> Steps[list[Pushed]]:
    """The statement of a push, fit for running inside any transaction on the same tables."""
    if any(job.unique_key is not None for job in jobs):
        return (yield from _keyed(statements, jobs, now, notice))
    if len(jobs) == 1:
        got = yield Call(statements["push.one"], {**new_job_values(jobs[0], now), **notice})
        return [Pushed(got.rows[0][0], True)]
    got = yield Call(statements["push.insert"], {**_columns(jobs, now), **notice})
    return [Pushed(id, True) for id in got.rows[0][0]]


def _keyed(
    statements: Statements, jobs: Sequence[NewJob], now: Moment, notice: Mapping[str, str | None]
) -> Steps[list[Pushed]]:
    # A statement cannot meet one key twice, so what the pushes of a key come to is put into the first of them.
    firsts: dict[tuple[str, str | int], NewJob] = {}
    for place, job in enumerate(jobs):
        own = (job.kind, place if job.unique_key is None else job.unique_key)
        if own not in firsts:
            firsts[own] = job
        elif job.latest:
            firsts[own] = firsts[own]._replace(run_at=job.run_at, latest=True)
    rows = list(firsts.values())
    columns = _columns(rows, now) | {
        "unique_key": [job.unique_key for job in rows],
        "latest": [job.latest and job.unique_key is not None for job in rows],
    }
    got = yield Call(statements["push.keyed"], {**columns, **notice})
    made, ids, kinds, keys = got.rows[0][:4]
    has_key = dict(zip(zip(kinds, keys, strict=True), ids, strict=True))
    own_id = dict(zip(firsts, made, strict=True))
    pushed: list[Pushed] = []
    for place, job in enumerate(jobs):
        own = (job.kind, place if job.unique_key is None else job.unique_key)
        id = has_key.get(own, own_id[own])
        pushed.append(Pushed(id, id == own_id[own] and firsts.pop(own, None) is not None))
    return pushed


def _columns(jobs: Sequence[NewJob], now: Moment) -> dict[str, Any]:
    return {
        "jobs": len(jobs),
        "queue": _once([job.queue for job in jobs]),
        "kind": _once([job.kind for job in jobs]),
        "mode": _once([job.mode for job in jobs]),
        "run_at": _once([job.run_at for job in jobs]),
        "hold_ms": _once([job.hold_ms for job in jobs]),
        "payload": [job.payload for job in jobs],
        "options": _sparse([job.options for job in jobs]),
        "alone_key": _sparse([job.alone_key for job in jobs]),
        "carried": _sparse([job.carried for job in jobs]),
        "schedule": _sparse([job.schedule for job in jobs]),
        "created_at": now,
    }


def _once(values: list[V]) -> list[V]:
    """One of what is the same for all: the statement takes the first wherever there is no other."""
    return values[:1] if values.count(values[0]) == len(values) else values


def _sparse(values: list[str | None]) -> list[str | None]:
    """Nothing for nothing but nulls: arrays side by side are filled up with nulls to the length of the longest."""
    return [] if values.count(None) == len(values) else values

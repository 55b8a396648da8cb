"""Celery's app, for its pushes and for the processes of its worker; these tell of each job through a pipe."""

from __future__ import annotations

import os
from struct import Struct

from tests.benchmarks.contender import load

__all__ = ["JOB", "app", "nothing"]

JOB = Struct("<i")
"""The number of a job that has run."""

app = load("celery").Celery("bench", broker=os.environ["BENCH_REDIS"])
app.conf.task_ignore_result = True


def run(number: int) -> None:
    os.write(int(os.environ["BENCH_PIPE"]), JOB.pack(number))


nothing = app.task(name="nothing")(run)

"""Pruning by hand."""

from __future__ import annotations

import json

from tests.cli.command import Command, push_failed


async def test_prune_forgets_what_failed_longer_ago_than_it_is_told(fastqueue: Command) -> None:
    await push_failed(fastqueue.url, "old", "old")

    kept = fastqueue("prune", "--older-than", "5200w")
    gone = fastqueue("prune", "--older-than", "0s")

    assert (kept.status, kept.out) == (0, "0 failed jobs forgotten.\n")
    assert (gone.status, gone.out) == (0, "2 failed jobs forgotten.\n")
    assert json.loads(fastqueue("jobs", "--json").out) == []

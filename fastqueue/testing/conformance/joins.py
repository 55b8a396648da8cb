"""Clauses of pushes inside a transaction of the app's."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from fastqueue.job import Pushed
from fastqueue.store import Keep
from fastqueue.testing.conformance.clause import clause
from fastqueue.testing.conformance.faculties import PATIENCE, listening
from fastqueue.testing.conformance.stage import DAY, T0, Stage, job, numbers

__all__ = ["JoinClauses"]


class _RolledBack(Exception):
    pass


class JoinClauses:
    @clause("joins")
    async def test_x1_a_push_in_a_transaction_is_kept_if_that_commits(self, on: Stage) -> None:
        """X1: what is pushed through it is kept if the transaction commits, and only then; claims are not held up."""
        assert on.begin is not None
        for n, commits in enumerate((False, True)):
            try:
                async with on.begin() as handle:
                    [pushed] = await _push(on, handle, n)
                    assert pushed.new
                    await on.nothing()
                    if not commits:
                        raise _RolledBack
            except _RolledBack:
                pass
        assert numbers(await on.claim_each()) == [1]
        await on.nothing(T0 - DAY)

    @clause("joins", Keep.KEYS)
    async def test_x1_a_key_pushed_in_a_transaction_is_free_after_a_rollback(self, on: Stage) -> None:
        """X1: a rollback takes the unique key back too."""
        assert on.begin is not None
        try:
            async with on.begin() as handle:
                assert [each.new for each in await _push(on, handle, 1, unique_key="a")] == [True]
                assert [each.new for each in await _push(on, handle, 2, unique_key="a")] == [False]
                raise _RolledBack
        except _RolledBack:
            pass
        assert (await on.push(3, unique_key="a")).new

    @clause("joins", "wakes")
    async def test_x1_others_are_told_of_a_push_in_a_transaction_when_it_has_committed(self, on: Stage) -> None:
        """X1: inside the transaction a push tells nobody; `Wakes.tell` after the commit does."""
        assert on.begin is not None
        assert on.store.wakes
        async with listening(await on.another()) as woken:
            async with on.begin() as handle:
                await _push(on, handle, 1)
            await on.store.wakes.tell()
            await asyncio.wait_for(woken.wait(), PATIENCE)

    @clause("joins")
    async def test_x2_a_transaction_of_the_store_s_own_is_committed_as_its_block_ends(self, on: Stage) -> None:
        """X2: committed when its block is left, then told of; rolled back by an exception, and not told of."""
        told: list[int] = []
        for n, commits in enumerate((False, True)):
            try:
                async with on.joins.transaction() as handle:
                    assert (await _push(on, handle, n))[0].new
                    assert on.joins.enlist(handle).after_commit(partial(told.append, n), pushed=1)
                    await on.nothing()
                    assert told == []
                    if not commits:
                        raise _RolledBack
            except _RolledBack:
                pass
        assert told == [1]
        assert numbers(await on.claim_each()) == [1]

    @clause("joins", Keep.KEYS)
    async def test_x2_a_cancellation_rolls_back_and_leaves_nothing_open(self, on: Stage) -> None:
        """X2: rolled back, with nothing of it left open, when a cancellation leaves the block."""
        pushed = asyncio.Event()

        async def cancelled() -> None:
            async with on.joins.transaction() as handle:
                await _push(on, handle, 1, unique_key="a")
                pushed.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(cancelled())
        await asyncio.wait_for(pushed.wait(), PATIENCE)
        task.cancel()
        await asyncio.wait({task}, timeout=PATIENCE)
        assert task.cancelled()
        async with asyncio.timeout(PATIENCE):
            assert (await on.push(2, unique_key="a")).new
        assert numbers(await on.claim_each()) == [2]


async def _push(on: Stage, handle: object, n: int, **asks: Any) -> list[Pushed]:
    enlisted = on.joins.enlist(handle)
    if enlisted.sync:
        return enlisted.push_sync([job(n, **asks)], now=T0)
    return await enlisted.push([job(n, **asks)], now=T0)

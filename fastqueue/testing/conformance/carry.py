"""Clauses of what a job carries, and of all the text that a store only keeps."""

from __future__ import annotations

from fastqueue.job import NewJob
from fastqueue.store import Keep
from fastqueue.testing.conformance.clause import clause
from fastqueue.testing.conformance.stage import HOUR, MINUTE, T0, Asks, Stage, job

__all__ = ["CarryClauses"]

CARRIED = '{"request_id":"TQUEUE4TEST2","tenant":"acme"}'

TEXTS = {
    "spacing": '{ "b" :1,\t"a": [ ] , "b":2 }',
    "numbers": "[3889108265204450030,9007199254740993,1e400,-0.0,1.50,1000000000000000000000000000000]",
    "unicode": '"\u00e4\u00f6\u00fc \u4f60\u597d \U0001f40d\U0001f3f4\u200d\u2620\ufe0f e\u0301 \u202e\u200b \u2028"',
    "escapes": r'"\u0000 \\ \" \/ \ud83d"',
    "quoting": """"it's 'so' `now` %s %(n)s :name $1 ? {jobs} -- ; /* */ \\\\" """,
    "control": '"\u0001\u001f\u007f\u0085"',
    "empty": "",
    "long": '"' + "long \u00e9 " * 40_000 + '"',
}


class CarryClauses:
    @clause(Keep.CARRIED)
    async def test_c1_what_a_job_carries_comes_with_every_claim(self, on: Stage) -> None:
        """C1: what the job carries is kept, through every claim and retry."""
        await on.push(1, carried=CARRIED)
        first = await on.take(T0)
        assert first.carried == CARRIED
        assert await on.retry(first, T0 + MINUTE)
        second = await on.take(T0 + MINUTE)
        assert second.carried == CARRIED
        assert (await on.take(T0 + 2 * MINUTE)).carried == CARRIED
        await on.push(2, T0 - HOUR)
        assert (await on.take(T0 + 2 * MINUTE)).carried is None

    @clause(Keep.CARRIED, Keep.KEYS, Keep.LATEST)
    async def test_c2_the_first_push_s_stays(self, on: Stage) -> None:
        """C2: the first push's stays, also when a later one moves the job."""
        for kind, latest in (("count", False), ("other", True)):
            asks: Asks = {"kind": kind, "unique_key": "k", "latest": latest}
            await on.push(1, T0 - MINUTE, carried=CARRIED, **asks)
            await on.push(2, T0, carried='{"request_id":"TLATER"}', **asks)
        assert [each.carried for each in await on.claim(limit=9)] == [CARRIED, CARRIED]

    @clause(Keep.CARRIED, "failed")
    async def test_c3_a_failed_job_carries_it_on(self, on: Stage) -> None:
        """C3: what the job carries is listed with a failed job, and stays when it is run again."""
        id = await on.failed(1, carried=CARRIED)
        assert [each.carried_text for each in await on.failures.page()] == [CARRIED]
        assert await on.failures.run_again([id], at=T0 + HOUR) == [True]
        assert (await on.take(T0 + HOUR)).carried == CARRIED

    @clause(*Keep, "schedules")
    async def test_g2_a_push_of_any_sort_keeps_all_it_asks(self, on: Stage) -> None:
        """G2: what the job carries and what limits it is kept by a push of any sort."""
        asks: Asks = {
            "queue": "slow",
            "hold_ms": 90_001,
            "options": '{"timeout":5}',
            "alone_key": "x",
            "at_once": 7,
            "carried": CARRIED,
            "schedule": "report",
        }
        plain, unique, latest, run = (
            job(n, kind=kind, unique_key=key, latest=kind == "report", **asks)
            for n, (kind, key) in enumerate([("count", None), ("other", "u"), ("report", "l"), ("digest", "s")])
        )
        await on.store.push([plain], now=T0)
        await on.store.push([unique, latest], now=T0)
        assert (await on.schedules.push_run("report", run, now=T0)).pushed
        found = await on.claim(limit=9)
        assert [each.unique_key for each in found] == [None, "u", "l", "s"]
        assert [{name: getattr(each, name) for name in asks} for each in found] == [asks] * 4

    @clause(Keep.CARRIED)
    async def test_b1_text_comes_back_as_it_was_given(self, on: Stage) -> None:
        """B1, C1: payload, options, carried and error are text: letter by letter what was given."""
        for name, text in TEXTS.items():
            given = NewJob(kind="count", payload=text, run_at=T0, hold_ms=MINUTE, options=text, carried=text)
            await on.store.push([given], now=T0)
            claimed = await on.take()
            assert (name, claimed.payload, claimed.options, claimed.carried) == (name, text, text, text)
            assert await on.retry(claimed, T0, text)
            claimed = await on.take()
            assert (name, claimed.payload, claimed.error) == (name, text, text)
            [kept] = await on.stored()
            assert (name, kept.payload, kept.options, kept.carried_text, kept.error) == (name, text, text, text, text)
            assert await on.done(claimed)

    @clause(Keep.QUEUES, Keep.KEYS)
    async def test_b1_names_are_data(self, on: Stage) -> None:
        """B1: a kind, queue or key is kept and found as given, whatever letters it has."""
        names = ["it's", 'a"b', "a.b", "a;drop table jobs", "%", "\\", "\u00e4", "Count", "count ", "n" * 64]
        for n, name in enumerate(names):
            await on.push(n, kind=name, queue=name, unique_key=name)
        for name in names:
            [found] = await on.claim(limit=9, kinds=[name], queues=[name])
            assert (found.kind, found.queue, found.unique_key) == (name, name, name)

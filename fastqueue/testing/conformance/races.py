"""Clauses that only several at once can break: eight store objects on one database, in tasks and in processes.

Each race is run several times, each round with kinds and keys of its own. A racer gets a store object, its number and
what the check gives it; it is a function of a module, so that another process can run it.
"""

from __future__ import annotations

from fastqueue.job import Claimed, Moment, Pushed
from fastqueue.outcome import Settlement
from fastqueue.store import Hits, Keep, RunPushed, Store
from fastqueue.testing.conformance.clause import clause
from fastqueue.testing.conformance.stage import MINUTE, T0, Stage, job, number

__all__ = ["RaceClauses"]

_A_CREW = 2**32
"""Tokens between the racers of one round, so that none is used twice."""

_ALL_DUE = T0 + 100
"""When the jobs of all racers are due, which are some milliseconds apart."""


class RaceClauses:
    @clause(run="race")
    async def test_b7_no_job_is_claimed_twice(self, on: Stage) -> None:
        """B7: never one that is held, however many claim at once."""
        for round in on.rounds:
            kind = f"count{round}"
            pushed = await on.store.push([job(n, kind=kind) for n in range(40)], now=T0)
            for limit, at in ((1, T0), (3, T0 + MINUTE)):
                claims = await on.race(_claim_all, on.token(), kind, limit, at)
                ids = [each.id for claimed in claims for each in claimed]
                assert sorted(ids) == [each.id for each in pushed]

    @clause(run="race")
    async def test_b2_one_of_several_settles_a_job(self, on: Stage) -> None:
        """B2: a late one answers False: of several settlements of one claim, exactly one answers True."""
        for round in on.rounds:
            await on.store.push([job(n, kind=f"count{round}") for n in range(10)], now=T0)
            claimed = await on.claim(limit=10, kinds=[f"count{round}"])
            told = await on.race(_settle_each, claimed)
            assert [sum(answers) for answers in zip(*told, strict=True)] == [1] * 10

    @clause("schedules", run="race")
    async def test_s4_one_of_several_pushes_the_run(self, on: Stage) -> None:
        """S4: of several at once exactly one is pushed."""
        for round in on.rounds:
            answers = await on.race(_push_run, f"report{round}")
            assert sorted(each.pushed for each in answers) == [False] * 7 + [True]
            assert {each.recorded for each in answers} == {T0}
            assert len(await on.claim_each(kinds=[f"report{round}"])) == 1

    @clause(Keep.KEYS, run="race")
    async def test_u4_one_of_several_pushes_of_a_key_is_new(self, on: Stage) -> None:
        """U4: of several pushes of one key at once, exactly one is new."""
        for round in on.rounds:
            answers = await on.race(_push_key, f"a{round}", T0, False)
            assert sorted(each.new for each in answers) == [False] * 7 + [True]
            assert len({each.id for each in answers}) == 1
            assert len(await on.claim_each(_ALL_DUE)) == 1

    @clause(Keep.KEYS, run="race")
    async def test_u4_pushes_of_many_keys_at_once_get_on(self, on: Stage) -> None:
        """U4: of several pushes of one key at once, exactly one is new, in whatever order the calls name the keys."""
        for round in on.rounds:
            answers = await on.race(_push_keys, f"a{round}", 20)
            assert [sum(each) for each in zip(*answers, strict=True)] == [1] * 20
            assert len(await on.claim(limit=99)) == 20

    @clause(Keep.LATEST, run="race")
    async def test_l3_of_several_latest_pushes_one_job_waits(self, on: Stage) -> None:
        """L3: with `latest`, of several at once one job waits, at the time of one of them."""
        for round in on.rounds:
            answers = await on.race(_push_key, f"a{round}", T0, True)
            assert sum(each.new for each in answers) == 1
            [found] = await on.claim_each(_ALL_DUE)
            assert found.run_at - T0 in range(8)

    @clause(Keep.ONE_AT_A_TIME, run="race")
    async def test_o5_one_of_several_claims_a_key(self, on: Stage) -> None:
        """O5: never a job whose (kind, alone_key) a held job has, however many claim at once."""
        for round in on.rounds:
            kind = f"count{round}"
            await on.store.push([job(n, kind=kind, alone_key="a") for n in range(8)], now=T0)
            for limit, at in ((1, T0), (10, T0 + MINUTE)):
                claims = await on.race(_claim, on.token(), kind, limit, at)
                assert sorted(len(claimed) for claimed in claims) == [0] * 7 + [1]

    @clause(Keep.ONE_AT_A_TIME, run="race")
    async def test_o5_claims_of_many_keys_at_once_get_on(self, on: Stage) -> None:
        """O5: never two held of one key, and none of the keys is passed over."""
        for round in on.rounds:
            kind = f"count{round}"
            await on.store.push([job(n, kind=kind, alone_key=f"k{n % 12}") for n in range(48)], now=T0)
            claims = await on.race(_claim_all, on.token(), kind, 2, T0)
            keys = [each.alone_key for claimed in claims for each in claimed]
            assert sorted(keys, key=str) == sorted({f"k{n}" for n in range(12)})

    @clause(Keep.AT_ONCE, run="race")
    async def test_a5_as_many_as_may_run_are_claimed(self, on: Stage) -> None:
        """A5: never more than `at_once`, and not fewer either, however many claim at once."""
        for round in on.rounds:
            kind = f"resize{round}"
            await on.store.push([job(n, kind=kind, at_once=3) for n in range(8)], now=T0)
            for limit, at in ((1, T0), (2, T0 + MINUTE), (10, T0 + 2 * MINUTE)):
                claims = await on.race(_claim, on.token(), kind, limit, at)
                assert sum(len(claimed) for claimed in claims) == 3

    @clause(Keep.KEYS, run="race")
    async def test_g13_a_unique_push_beside_a_claim_is_never_lost(self, on: Stage) -> None:
        """G13: a push beside the claim of the waiting job is refused while that waits, or new; never an error."""
        for round in on.rounds:
            key = f"a{round}"
            await on.push(0, unique_key=key)
            answers = await on.race(_push_or_claim, on.token(), key, False)
            pushed = [each for each in answers if isinstance(each, Pushed)]
            claimed = [each for answer in answers if isinstance(answer, list) for each in answer]
            assert 1 + sum(each.new for each in pushed) == len(claimed) + len(await on.claim_each(_ALL_DUE))

    @clause(Keep.LATEST, run="race")
    async def test_g13_a_latest_push_beside_a_claim_is_never_lost(self, on: Stage) -> None:
        """G13: a push with `latest` beside a claim moves the waiting job or is new; never an error."""
        for round in on.rounds:
            key = f"a{round}"
            await on.push(0, unique_key=key)
            answers = await on.race(_push_or_claim, on.token(), key, True)
            pushed = [each for each in answers if isinstance(each, Pushed)]
            claimed = [each for answer in answers if isinstance(answer, list) for each in answer]
            assert 1 + sum(each.new for each in pushed) == len(claimed) + len(await on.claim_each(_ALL_DUE))

    @clause(Keep.KEYS, "holds", run="race")
    async def test_g13_a_hold_back_beside_a_unique_push_leaves_one_with_the_key(self, on: Stage) -> None:
        """G13, H3: never an error, and one job waits with the key."""
        for round in on.rounds:
            kind = f"count{round}"
            await on.push(0, kind=kind, unique_key="a")
            claimed = await on.take(kinds=[kind])
            answers = await on.race(_push_or_hold_back, kind, claimed)
            new = sum(answers[1:])
            assert answers[0] is True
            kept = await on.stored(kind=kind)
            assert len(kept) == 1 + new
            assert [each.unique_key for each in kept].count("a") == 1

    @clause(Keep.KEYS, run="race")
    async def test_g13_give_backs_of_one_key_leave_one_with_it(self, on: Stage) -> None:
        """G13, H3: of several given back at once with one key, one waits with it; never an error."""
        for round in on.rounds:
            kind = f"count{round}"
            claimed: list[Claimed] = []
            for n in range(8):
                await on.push(n, kind=kind, unique_key="a")
                claimed.append(await on.take(kinds=[kind]))
            assert await on.race(_give_back, claimed) == [True] * 8
            assert sorted(str(each.unique_key) for each in await on.stored(kind=kind)) == ["None"] * 7 + ["a"]

    @clause("throttles", run="race")
    async def test_t4_tries_at_once_are_counted_each(self, on: Stage) -> None:
        """T4: n tries at once give 1..n, each once."""
        for round in on.rounds:
            answers = await on.race(_hit, f"mail{round}", 3)
            assert sorted(each.tries for hits in answers for each in hits) == list(range(1, 25))
            assert {each.ends for hits in answers for each in hits} == {T0 + MINUTE}


async def _claim(store: Store, number: int, token: int, kind: str, limit: int, at: Moment) -> list[Claimed]:
    own = token + (number + 1) * _A_CREW
    return (await store.claim(at, token=own, limit=limit, queues=None, kinds=[kind])).jobs


async def _claim_all(store: Store, number: int, token: int, kind: str, limit: int, at: Moment) -> list[Claimed]:
    found: list[Claimed] = []
    for turn in range(40):
        claimed = await _claim(store, number, token + turn * 16 * _A_CREW, kind, limit, at)
        if not claimed:
            break
        found += claimed
    return found


async def _settle_each(store: Store, number: int, claimed: list[Claimed]) -> list[bool]:
    """Half of the racers settle one after the other, half all at once."""
    told = [Settlement.done(each) for each in claimed]
    if number % 2:
        return await store.settle(told)
    return [answer for each in told for answer in await store.settle([each])]


async def _push_run(store: Store, number: int, schedule: str) -> RunPushed:
    assert store.schedules is not None
    return await store.schedules.push_run(schedule, job(number, kind=schedule, schedule=schedule), now=T0)


async def _push_key(store: Store, number: int, key: str, at: Moment, latest: bool) -> Pushed:
    [pushed] = await store.push([job(number, at + number, unique_key=key, latest=latest)], now=T0)
    return pushed


async def _push_keys(store: Store, number: int, key: str, count: int) -> list[bool]:
    """Half of the racers name the keys in the other order."""
    names = [f"{key}.{n}" for n in range(count)]
    ordered = names[::-1] if number % 2 else names
    new = {
        name: pushed.new
        for name, pushed in zip(
            ordered, await store.push([job(unique_key=name) for name in ordered], now=T0), strict=True
        )
    }
    return [new[name] for name in names]


async def _push_or_claim(store: Store, number: int, token: int, key: str, latest: bool) -> Pushed | list[Claimed]:
    if number % 2:
        return await _claim(store, number, token, "count", 1, _ALL_DUE)
    return await _push_key(store, number, key, T0, latest)


async def _push_or_hold_back(store: Store, racer: int, kind: str, claimed: Claimed) -> bool:
    if racer == 0:
        assert store.holds is not None
        return await store.holds.hold_back(claimed, until=T0)
    return (await store.push([job(racer, kind=kind, unique_key="a")], now=T0))[0].new


async def _give_back(store: Store, racer: int, claimed: list[Claimed]) -> bool:
    [had] = [each for each in claimed if number(each) == racer]
    return (await store.give_back([had]))[0]


async def _hit(store: Store, number: int, key: str, times: int) -> list[Hits]:
    assert store.throttles is not None
    return [await store.throttles.hit(key, now=T0, window_ms=MINUTE) for _ in range(times)]

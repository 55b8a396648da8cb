"""Memory stores with one bug each, and the clauses that have to find it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from fastqueue.job import Claimed, Moment, NewJob, Pushed, StoredJob, Which
from fastqueue.moves import Portion
from fastqueue.outcome import Ending, Settlement
from fastqueue.store import Claim, FailedJobs, Hits, Holds, RunPushed, Schedules, Throttles
from fastqueue.stores._kept import Kept, Row
from fastqueue.stores.memory import MemoryStore

BUGS: dict[str, tuple[Callable[[], MemoryStore], tuple[str, ...]]] = {}
"""By the name of each bug: what makes a store that has it, and the clauses that have to find it."""

B = TypeVar("B", bound=type[Kept] | type[MemoryStore])


def found_by(*clauses: str) -> Callable[[B], B]:
    """Put a bug on the list: a `Kept` with a bug, or a whole store."""

    def put(bug: B) -> B:
        BUGS[bug.__name__] = (partial(_made, bug), clauses)
        return bug

    return put


def _made(bug: type[Kept] | type[MemoryStore]) -> MemoryStore:
    if issubclass(bug, MemoryStore):
        return bug()
    store = MemoryStore()
    store._share(bug())
    return store


# Claims


@found_by("B1", "B7")
class HoldsNothing(Kept):
    def hold(self, row: Row, *, token: int, until: Moment) -> Claimed:
        claimed = super().hold(row, token=token, until=until)
        self.lapse(until)
        return claimed


@found_by("B2", "O2c", "A2c")
class HoldNeverEnds(Kept):
    def lapse(self, now: Moment) -> None:
        pass


@found_by("B2")
class HoldEndsAMillisecondLate(Kept):
    def lapse(self, now: Moment) -> None:
        super().lapse(now - 1)


@found_by("B1")
class EveryHoldIsAMinute(Kept):
    def hold(self, row: Row, *, token: int, until: Moment) -> Claimed:
        return super().hold(row, token=token, until=until - row.given.hold_ms + 60_000)


@found_by("B2")
class LostJobGoesToTheEnd(Kept):
    def lapse(self, now: Moment) -> None:
        before = {row.id for row in self.rows.values() if row.held_until}
        super().lapse(now)
        for id in before:
            if not self.rows[id].held_until:
                self._leave_line(self.rows[id])
                self.rows[id].run_at = now
                self._queue_up(self.rows[id])


@found_by("B2")
class LostJobIsNotTold(Kept):
    def hold(self, row: Row, *, token: int, until: Moment) -> Claimed:
        return super().hold(row, token=token, until=until)._replace(lost=False)


@found_by("G16")
class ClaimsAMillisecondEarly(Kept):
    def walk(self, now: Moment, limit: int, queue: str | None, kinds: Collection[str]) -> list[Row]:
        return super().walk(now + 1, limit, queue, kinds)


@found_by("B6")
class OrdersById(Kept):
    def walk(self, now: Moment, limit: int, queue: str | None, kinds: Collection[str]) -> list[Row]:
        due = [row for _, row in sorted(self.rows.items()) if self._waits(row, now, queue, kinds)][:limit]
        for row in due:
            self._count(row)
        return due

    def _waits(self, row: Row, now: Moment, queue: str | None, kinds: Collection[str]) -> bool:
        return (
            row.failed_at is None
            and not row.held_until
            and row.run_at <= now
            and row.given.kind in kinds
            and queue in (None, row.given.queue)
            and not self._full(row)
        )


@found_by("G1")
class LastPushedFirst(OrdersById):
    def walk(self, now: Moment, limit: int, queue: str | None, kinds: Collection[str]) -> list[Row]:
        due = sorted(
            (row for row in self.rows.values() if self._waits(row, now, queue, kinds)),
            key=lambda row: (row.run_at, -row.id),
        )[:limit]
        for row in due:
            self._count(row)
        return due


@found_by("D17")
class ClaimsUnknownKinds(Kept):
    def walk(self, now: Moment, limit: int, queue: str | None, kinds: Collection[str]) -> list[Row]:
        return super().walk(now, limit, queue, {lane[1] for lane in self.lines})


@found_by("D17")
class QueuesAreOneLine(MemoryStore):
    async def claim(
        self, now: Moment, *, token: int, limit: int, queues: Sequence[str] | None, kinds: Collection[str]
    ) -> Claim:
        if queues is not None:
            return await super().claim(now, token=token, limit=limit, queues=sorted(queues), kinds=kinds)
        return await super().claim(now, token=token, limit=limit, queues=None, kinds=kinds)


@found_by("D17")
class ALimitForEachQueue(Kept):
    def walk(self, now: Moment, limit: int, queue: str | None, kinds: Collection[str]) -> list[Row]:
        return super().walk(now, max(limit, 1), queue, kinds)


@found_by("O1", "A1")
class LooksAtTheFirstHundred(Kept):
    def walk(self, now: Moment, limit: int, queue: str | None, kinds: Collection[str]) -> list[Row]:
        lines = self.lines
        first = sorted(place for line in lines.values() for place in line)[:100]
        self.lines = {lane: [place for place in line if place in first] for lane, line in lines.items()}
        self.lines = {lane: line for lane, line in self.lines.items() if line}
        try:
            return super().walk(now, limit, queue, kinds)
        finally:
            self.lines = lines


# Pushes


@found_by("U1")
class AKeyForAllKinds(Kept):
    def push(self, job: NewJob, *, move: bool) -> Pushed:
        taken = next((row for (_, key), row in self.waiting_keys.items() if key == job.unique_key), None)
        return super().push(job, move=move) if taken is None else Pushed(taken.id, new=False)


@found_by("U1")
class LooksForKeysBeforeTheCall(MemoryStore):
    async def push(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        waiting = dict(self._kept.waiting_keys)
        pushed: list[Pushed] = []
        for job in jobs:
            row = waiting.get((job.kind, str(job.unique_key)))
            if row is None:
                self._kept.waiting_keys.pop((job.kind, str(job.unique_key)), None)
            pushed.append(self._kept.push(job, move=job.latest))
        return pushed


@found_by("U1")
class KeysIgnoreCase(MemoryStore):
    async def push(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        return await super().push(
            [job._replace(unique_key=job.unique_key and job.unique_key.lower()) for job in jobs], now=now
        )


@found_by("L1")
class LatestOnlyMovesLater(Kept):
    def push(self, job: NewJob, *, move: bool) -> Pushed:
        waiting = self.waiting_keys.get((job.kind, str(job.unique_key)))
        return super().push(job, move=move and waiting is not None and waiting.run_at < job.run_at)


@found_by("L3")
class EveryPushMoves(Kept):
    def push(self, job: NewJob, *, move: bool) -> Pushed:
        return super().push(job, move=True)


@found_by("C2", "G4")
class LatestReplacesCarried(Kept):
    def push(self, job: NewJob, *, move: bool) -> Pushed:
        pushed = super().push(job, move=move)
        row = self.rows[pushed.id]
        if move:
            row.given = row.given._replace(carried=job.carried)
        return pushed


@found_by("G2", "C1")
class DropsCarried(Kept):
    def push(self, job: NewJob, *, move: bool) -> Pushed:
        return super().push(job._replace(carried=None), move=move)


@found_by("G2")
class UniquePushDropsLimits(Kept):
    def push(self, job: NewJob, *, move: bool) -> Pushed:
        return super().push(job._replace(at_once=0) if job.unique_key else job, move=move)


@found_by("B1")
class RewritesPayloads(Kept):
    def push(self, job: NewJob, *, move: bool) -> Pushed:
        try:
            payload = json.dumps(json.loads(job.payload))
        except ValueError:
            payload = job.payload
        return super().push(job._replace(payload=payload), move=move)


@found_by("G21")
class PushesOneByOne(MemoryStore):
    async def push(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        pushed: list[Pushed] = []
        for job in jobs:
            pushed += await super().push([job], now=now)
            await asyncio.sleep(0)
        return pushed


# Keys


@found_by("U2", "U3")
class ClaimKeepsTheKey(Kept):
    def hold(self, row: Row, *, token: int, until: Moment) -> Claimed:
        key = row.unique_key
        claimed = super().hold(row, token=token, until=until)
        self._take_key(row, key)
        return claimed


@found_by("U2", "G7")
class RetryTakesTheKeyAgain(Kept):
    def settle(self, told: Settlement) -> bool:
        had = super().settle(told)
        row = self.rows.get(told.id)
        if had and row is not None and told.ending is Ending.WAITS:
            self._take_key(row, row.given.unique_key)
        return had


@found_by("G7")
class RunAgainTakesTheKeyAgain(Kept):
    def run_again(self, id: int, at: Moment) -> bool:
        again = super().run_again(id, at)
        if again and (self.rows[id].given.kind, str(self.rows[id].given.unique_key)) not in self.waiting_keys:
            self._take_key(self.rows[id], self.rows[id].given.unique_key)
        return again


@found_by("H3")
class GiveBackForgetsTheKey(Kept):
    def give_back(self, job: Claimed) -> bool:
        return super().give_back(job._replace(unique_key=None))


@found_by("H3")
class GiveBackStealsTheKey(Kept):
    def give_back(self, job: Claimed) -> bool:
        other = self.waiting_keys.pop((job.kind, str(job.unique_key)), None)
        if other is not None:
            other.unique_key = None
        return super().give_back(job)


# Limits


@found_by("O4")
class RetryDropsTheAloneKey(Kept):
    def settle(self, told: Settlement) -> bool:
        had = super().settle(told)
        row = self.rows.get(told.id)
        if had and row is not None and told.ending is Ending.WAITS:
            self._leave_line(row)
            row.given = row.given._replace(alone_key=None)
            self._queue_up(row)
        return had


@found_by("O3")
class AnAloneKeyForAllKinds(Kept):
    def walk(self, now: Moment, limit: int, queue: str | None, kinds: Collection[str]) -> list[Row]:
        own = self.held_alone
        self.held_alone = own | {(kind, key) for kind in kinds for _, key in own}
        try:
            taken = super().walk(now, limit, queue, kinds)
        finally:
            self.held_alone = own
        own.update(row.alone for row in taken if row.alone is not None)
        return taken


@found_by("A1", "A4")
class OwnBatchDoesNotCount(Kept):
    def walk(self, now: Moment, limit: int, queue: str | None, kinds: Collection[str]) -> list[Row]:
        own = self.held
        self.held = _CountsNoMore(own)
        try:
            taken = super().walk(now, limit, queue, kinds)
        finally:
            self.held = own
        own.update(row.given.kind for row in taken)
        return taken


class _CountsNoMore(Counter[str]):
    def __setitem__(self, kind: str, count: int) -> None:
        pass


@found_by("A4")
class FreeJobsDoNotCount(Kept):
    def _count(self, row: Row) -> None:
        super()._count(row)
        if not row.given.at_once:
            self.held[row.given.kind] -= 1

    def _end_hold(self, row: Row) -> None:
        super()._end_hold(row)
        if not row.given.at_once:
            self.held[row.given.kind] += 1


@found_by("G18")
class TheFirstLimitIsTheKinds(Kept):
    def _full(self, row: Row) -> bool:
        limits = [each.given.at_once for each in self.rows.values() if each.given.kind == row.given.kind]
        return row.given.at_once > 0 and min(filter(None, limits)) <= self.held[row.given.kind]


@found_by("A1", "A2c")
class LimitIsIgnored(Kept):
    def _full(self, row: Row) -> bool:
        return False


# Ends


@found_by("B2")
class AcceptsLateSettles(Kept):
    def _of_claim(self, id: int, token: int) -> Row | None:
        row = self.rows.get(id)
        return row if row is not None and row.token else None


@found_by("G9")
class KnowsClaimsByTheirAttempt(Kept):
    def __init__(self) -> None:
        super().__init__()
        self.attempts: dict[int, int] = {}

    def hold(self, row: Row, *, token: int, until: Moment) -> Claimed:
        claimed = super().hold(row, token=token, until=until)
        self.attempts[token] = claimed.attempts
        return claimed

    def _of_claim(self, id: int, token: int) -> Row | None:
        row = self.rows.get(id)
        current = row is not None and row.token and row.attempts == self.attempts.get(token)
        return row if current else None


@found_by("B2")
class RefusesSettlesAfterTheHold(Kept):
    def settle(self, told: Settlement) -> bool:
        row = self.rows.get(told.id)
        return row is not None and row.held_until != 0 and super().settle(told)


@found_by("G10")
class SettlesFailedJobsAgain(Kept):
    def settle(self, told: Settlement) -> bool:
        row = self.failed.get(told.id)
        if row is None or told.ending is not Ending.FAILED:
            return super().settle(told)
        row.error = told.error
        return True


@found_by("B3")
class DoneOnlyHides(Kept):
    def settle(self, told: Settlement) -> bool:
        if told.ending is not Ending.GONE:
            return super().settle(told)
        return super().settle(told._replace(ending=Ending.FAILED))


@found_by("B4")
class RetryForgetsTheError(Kept):
    def settle(self, told: Settlement) -> bool:
        return super().settle(told._replace(error=None) if told.ending is Ending.WAITS else told)


@found_by("B4")
class CountsNoInterruptions(Kept):
    def settle(self, told: Settlement) -> bool:
        return super().settle(told._replace(interruptions=0))


@found_by("B5")
class ClaimsFailedJobs(Kept):
    def settle(self, told: Settlement) -> bool:
        had = super().settle(told)
        if had and told.ending is Ending.FAILED:
            self._queue_up(self.rows[told.id])
        return had


@found_by("H1")
class GiveBackKeepsTheAttempt(Kept):
    def give_back(self, job: Claimed) -> bool:
        if not super().give_back(job):
            return False
        self.rows[job.id].attempts += 1
        return True


@found_by("renew refuses a hold that is over")
class RenewsWhatIsOver(Kept):
    def renew(self, job: Claimed, *, now: Moment, until: Moment) -> bool:
        return self._of_claim(job.id, job.token) is not None


@found_by("renew holds a running job for longer")
class RenewsNothing(Kept):
    def renew(self, job: Claimed, *, now: Moment, until: Moment) -> bool:
        return super().renew(job, now=now, until=max(now + 1, self.rows[job.id].held_until))


# Schedules, held kinds, failed jobs, throttles


class _Changed(MemoryStore):
    """A store one of whose faculties has another verb."""

    schedules: Schedules
    holds: Holds
    failed: FailedJobs
    throttles: Throttles

    def _share(self, kept: Kept) -> None:
        super()._share(kept)
        self.change(kept)

    def change(self, kept: Kept) -> None:
        raise AssertionError("a bug has to be planted here")


def _replace(faculty: object, verb: str, new: Callable[..., Any]) -> None:
    setattr(faculty, verb, new)


@found_by("G14")
class RecordsARunBeforeItsJob(_Changed):
    def change(self, kept: Kept) -> None:
        push_run = self.schedules.push_run

        async def recorded_first(schedule: str, job: NewJob, *, now: Moment) -> RunPushed:
            if job.hold_ms.bit_length() < 64:
                return await push_run(schedule, job, now=now)
            kept.runs[schedule] = job.run_at
            raise OverflowError("the number is too large for a column")

        _replace(self.schedules, "push_run", recorded_first)


@found_by("U5")
class RecordsOnlyRunsThatGoIn(_Changed):
    def change(self, kept: Kept) -> None:
        push_run = self.schedules.push_run

        async def only_pushed(schedule: str, job: NewJob, *, now: Moment) -> RunPushed:
            before = dict(kept.runs)
            answer = await push_run(schedule, job, now=now)
            if not answer.pushed:
                kept.runs = before
            return answer

        _replace(self.schedules, "push_run", only_pushed)


@found_by("G3")
class ARunMovesTheWaitingJob(_Changed):
    def change(self, kept: Kept) -> None:
        push_run = self.schedules.push_run

        async def moving(schedule: str, job: NewJob, *, now: Moment) -> RunPushed:
            answer = await push_run(schedule, job, now=now)
            if not answer.pushed and job.latest:
                kept.push(job, move=True)
            return answer

        _replace(self.schedules, "push_run", moving)


@found_by("S2")
class RunsGoBackward(_Changed):
    def change(self, kept: Kept) -> None:
        async def other_than_recorded(schedule: str, job: NewJob, *, now: Moment) -> RunPushed:
            if kept.runs.get(schedule) == job.run_at:
                return RunPushed(False, job.run_at)
            kept.runs[schedule] = job.run_at
            return RunPushed(kept.push(job, move=False).new, job.run_at)

        _replace(self.schedules, "push_run", other_than_recorded)


@found_by("S5")
class HearsOnlyOfItsOwnZoneData(_Changed):
    def change(self, kept: Kept) -> None:
        tell_zone_data = self.schedules.tell_zone_data

        async def only_ours(version: str, *, now: Moment) -> dict[str, Moment]:
            return {version: (await tell_zone_data(version, now=now))[version]}

        _replace(self.schedules, "tell_zone_data", only_ours)


@found_by("H1")
class HoldBackUsesAnAttempt(_Changed):
    def change(self, kept: Kept) -> None:
        hold_back = self.holds.hold_back

        async def used(job: Claimed, *, until: Moment) -> bool:
            had = await hold_back(job, until=until)
            kept.rows[job.id].attempts += had
            return had

        _replace(self.holds, "hold_back", used)


@found_by("G5")
class HoldsMoveBackward(_Changed):
    def change(self, kept: Kept) -> None:
        async def last_said(job: Claimed, *, until: Moment) -> bool:
            kept.held_kinds[job.kind] = until
            return kept.give_back(job)

        _replace(self.holds, "hold_back", last_said)


@found_by("G6")
class ALateHoldBackHoldsNothing(_Changed):
    def change(self, kept: Kept) -> None:
        hold_back = self.holds.hold_back

        async def only_own(job: Claimed, *, until: Moment) -> bool:
            row = kept.rows.get(job.id)
            return row is not None and row.token == job.token and await hold_back(job, until=until)

        _replace(self.holds, "hold_back", only_own)


@found_by("X4")
class PruneEndsAllHolds(MemoryStore):
    async def prune(self, now: Moment, *, failed_before: Moment) -> int:
        self._kept.held_kinds.clear()
        return await super().prune(now, failed_before=failed_before)


@found_by("X3")
class PruneTakesOneMillisecondMore(MemoryStore):
    async def prune(self, now: Moment, *, failed_before: Moment) -> int:
        return await super().prune(now, failed_before=failed_before + 1)


@found_by("F2")
class RunAgainKeepsAttempts(Kept):
    def run_again(self, id: int, at: Moment) -> bool:
        attempts = self.rows[id].attempts if id in self.rows else 0
        again = super().run_again(id, at)
        if again:
            self.rows[id].attempts = attempts
        return again


@found_by("G8")
class RunAgainClearsTheError(Kept):
    def run_again(self, id: int, at: Moment) -> bool:
        again = super().run_again(id, at)
        if again:
            self.rows[id].error = None
        return again


@found_by("F3")
class RunsWaitingJobsAgain(Kept):
    def run_again(self, id: int, at: Moment) -> bool:
        row = self.rows.get(id)
        if row is None or row.failed_at is not None or row.held_until:
            return super().run_again(id, at)
        self._leave_line(row)
        row.run_at = at
        self._queue_up(row)
        return True


@found_by("G19")
class FirstOfEqualFailuresFirst(_Changed):
    def change(self, kept: Kept) -> None:
        page = self.failed.page

        async def by_time_alone(
            which: Which | None = None, *, limit: int = 100, after: StoredJob | None = None
        ) -> list[StoredJob]:
            jobs = await page(which, limit=limit, after=after)
            return sorted(jobs, key=lambda job: (-(job.failed_ms or 0), job.id))

        _replace(self.failed, "page", by_time_alone)


@found_by("F4")
class ErrorsAreComparedWithoutCapitals(_Changed):
    def change(self, kept: Kept) -> None:
        page = self.failed.page

        async def folded(
            which: Which | None = None, *, limit: int = 100, after: StoredJob | None = None
        ) -> list[StoredJob]:
            which = which or Which()
            jobs = await page(replace(which, error=None), limit=1_000, after=after)
            return [job for job in jobs if (which.error or "").lower() in (job.error or "").lower()][:limit]

        _replace(self.failed, "page", folded)


@found_by("F5")
class APageBeginsAfterItsMoment(_Changed):
    def change(self, kept: Kept) -> None:
        page = self.failed.page

        async def later(
            which: Which | None = None, *, limit: int = 100, after: StoredJob | None = None
        ) -> list[StoredJob]:
            before = which or Which() if after is None else replace(which or Which(), before=after.failed_ms)
            return await page(before, limit=limit)

        _replace(self.failed, "page", later)


@found_by("T1")
class TheWindowSlides(_Changed):
    def change(self, kept: Kept) -> None:
        hit = self.throttles.hit

        async def sliding(key: str, *, now: Moment, window_ms: int) -> Hits:
            hits = kept.windows[key] = Hits((await hit(key, now=now, window_ms=window_ms)).tries, now + window_ms)
            return hits

        _replace(self.throttles, "hit", sliding)


@found_by("counts take a lost job for a waiting one")
class CountsByTheLastClaim(MemoryStore):
    async def counts(self, now: Moment) -> list[Any]:
        return await super().counts(min((row.held_until or now + 1) - 1 for row in self._kept.rows.values()))


@found_by("store objects on one database see the same jobs")
class EachObjectHasItsOwnJobs(MemoryStore):
    def again(self) -> MemoryStore:
        return type(self)()


# Races: what a statement saw is over when the next one acts on it


class _Racy(MemoryStore):
    """A store that looks, lets others go first, and then acts on what it saw."""

    def looked(self) -> Kept:
        return deepcopy(self._kept)


@found_by("B7", "O5", "A5")
class TakesWhatItSawFree(_Racy):
    async def claim(
        self, now: Moment, *, token: int, limit: int, queues: Sequence[str] | None, kinds: Collection[str]
    ) -> Claim:
        seen, kept = self.looked(), self._kept
        seen.lapse(now)
        await asyncio.sleep(0)
        kept.lapse(now)
        jobs: list[Claimed] = []
        for queue in (None,) if queues is None else queues:
            for found in seen.walk(now, limit - len(jobs), queue, kinds):
                row = kept.rows[found.id]
                if row.held_until:
                    kept._end_hold(row)
                    kept._queue_up(row)
                kept._count(row)
                jobs.append(kept.hold(row, token=token, until=now + row.given.hold_ms))
        return Claim(jobs)


@found_by("O5", "A5")
class CountsBeforeTheLock(_Racy):
    async def claim(
        self, now: Moment, *, token: int, limit: int, queues: Sequence[str] | None, kinds: Collection[str]
    ) -> Claim:
        kept = self._kept
        kept.lapse(now)
        held, alone = kept.held.copy(), set(kept.held_alone)
        await asyncio.sleep(0)
        later, later_alone = kept.held, kept.held_alone
        kept.held, kept.held_alone = held, alone
        try:
            claim = await super().claim(now, token=token, limit=limit, queues=queues, kinds=kinds)
        finally:
            kept.held, kept.held_alone = later, later_alone
        for job in claim.jobs:
            kept._count(kept.rows[job.id])
        return claim


@found_by("A5")
class PassesOverWhatIsLocked(_Racy):
    _locked = False

    async def claim(
        self, now: Moment, *, token: int, limit: int, queues: Sequence[str] | None, kinds: Collection[str]
    ) -> Claim:
        if PassesOverWhatIsLocked._locked:
            return Claim([])
        PassesOverWhatIsLocked._locked = True
        await asyncio.sleep(0)
        PassesOverWhatIsLocked._locked = False
        return await super().claim(now, token=token, limit=limit, queues=queues, kinds=kinds)


@found_by("U4", "L3")
class LooksForTheKeyThenInserts(_Racy):
    async def push(self, jobs: Sequence[NewJob], *, now: Moment) -> list[Pushed]:
        seen = set(self._kept.waiting_keys)
        await asyncio.sleep(0)
        for job in jobs:
            if (job.kind, str(job.unique_key)) not in seen:
                self._kept.waiting_keys.pop((job.kind, str(job.unique_key)), None)
        return await super().push(jobs, now=now)


@found_by("B2")
class SettlesWhatItSawHeld(_Racy):
    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        seen = [self._kept._of_claim(told.id, told.token) is not None for told in settlements]
        await asyncio.sleep(0)
        await super().settle(settlements)
        return seen


@found_by("S4")
class ReadsTheRunThenWrites(_Changed):
    def change(self, kept: Kept) -> None:
        async def read_then_written(schedule: str, job: NewJob, *, now: Moment) -> RunPushed:
            recorded = kept.runs.get(schedule)
            await asyncio.sleep(0)
            if recorded is not None and job.run_at <= recorded:
                return RunPushed(False, recorded)
            kept.runs[schedule] = job.run_at
            return RunPushed(kept.push(job, move=False).new, job.run_at)

        _replace(self.schedules, "push_run", read_then_written)


@found_by("T4")
class ReadsTheCountThenWrites(_Changed):
    def change(self, kept: Kept) -> None:
        async def read_then_written(key: str, *, now: Moment, window_ms: int) -> Hits:
            running = kept.windows.get(key, Hits(0, now + window_ms))
            await asyncio.sleep(0)
            hits = kept.windows[key] = Hits(running.tries + 1, running.ends)
            return hits

        _replace(self.throttles, "hit", read_then_written)


@found_by("M1")
class TheErrorStays(Kept):
    def leave(self, to: str, limit: int) -> Portion | None:
        portion = super().leave(to, limit)
        return portion and Portion(portion.number, [replace(job, error=None) for job in portion.jobs])


@found_by("M2")
class WhatLeavesIsStillInItsLane(Kept):
    def _mark(self, row: Row, token: int) -> None:
        super()._mark(row, token)
        if row.failed_at is None:
            self._queue_up(row)

    def left(self, number: int) -> None:
        for job in self.moving[1].jobs if self.moving and self.moving[1].number == number else ():
            if job.failed_at is None:
                self._leave_line(self.rows[job.id])
        super().left(number)


@found_by("M3")
class TakesAnotherPortionMeanwhile(Kept):
    def leave(self, to: str, limit: int) -> Portion | None:
        self.moving = None
        return super().leave(to, limit)


@found_by("M4")
class AnyPortionHasLeft(Kept):
    def left(self, number: int) -> None:
        if self.moving is not None:
            super().left(self.moving[1].number)


@found_by("M5")
class APortionArrivesAgain(Kept):
    def arrive(self, portion: Portion, origin: str) -> bool:
        self.last_portion.clear()
        return super().arrive(portion, origin)


@found_by("M6")
class JobsArriveWithNewIds(Kept):
    def arrive(self, portion: Portion, origin: str) -> bool:
        jobs = [replace(job, id=self._last_id + n) for n, job in enumerate(portion.jobs, 1)]
        return super().arrive(Portion(portion.number, jobs), origin)


@found_by("M7")
class RunsAreRecordedBackwards(_Changed):
    def change(self, kept: Kept) -> None:
        async def record(runs: Mapping[str, Moment]) -> None:
            kept.runs.update(runs)

        _replace(self.moves, "record", record)

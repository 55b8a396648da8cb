"""A kind of jobs: its name in the store, the type of its value, the function that does it, and its pushes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from inspect import iscoroutinefunction, isroutine, signature
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from fastqueue.codec import Codec, check_name
from fastqueue.errors import KindError, OptionError, RegistrationError
from fastqueue.job import DEFAULT_QUEUE, Moment, NewJob, Pushed
from fastqueue.options import Given, Options
from fastqueue.pushing import AS_IT_IS, How, Pushing
from fastqueue.schedule import Schedule
from fastqueue.signature import Handler
from fastqueue.unique import Unique, check_by, key_of

__all__ = ["Kind", "Road", "Run", "Scheduled", "Transaction"]

T = TypeVar("T")
N = TypeVar("N", bound=Awaitable[None] | None)


@dataclass(frozen=True, slots=True)
class Run:
    """What a handler may know of its attempt; it takes it as its second parameter.

    Attributes:
        id: The job's id.
        kind: The job's kind.
        queue: The named queue it waited in.
        attempt: 1 for the first.
        attempts_left: How many more it has after this one.
        carried: What it brought from its push.
        deadline: When its time limit ends; None: it has none.
        should_stop: Whether the time limit has passed or the queue is stopping: for plain functions, which nothing
            can interrupt, to look at from time to time.
    """

    id: int
    kind: str
    queue: str
    attempt: int
    attempts_left: int
    carried: Mapping[str, str]
    deadline: datetime | None
    should_stop: Callable[[], bool] = field(default=bool, repr=False)


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A schedule of a kind, with the value its runs are pushed with.

    Attributes:
        missed: "one": a run that came due while nothing ran is run once when something does. "skip": it is dropped
            when the next is due already.
    """

    name: str
    when: Schedule
    payload: str
    value: Any
    missed: Literal["one", "skip"] = "one"


class Road(Protocol):
    """What a kind needs of the queue it belongs to."""

    def own_store(self, *kinds: Kind[T]) -> Pushing[T]: ...

    def transaction_of(self, handle: object, *kinds: Kind[T]) -> Pushing[T]: ...

    def schedule(self, kind: Kind[Any], scheduled: Scheduled) -> None: ...

    @property
    def closed_to_registration(self) -> str | None: ...


class HasCommit(Protocol):
    """A session or connection with a commit of its own: SQLAlchemy, SQLModel, psycopg, aiosqlite, sqlite3, asyncmy."""

    def commit(self) -> Any: ...


class HasTransaction(Protocol):
    """A connection that says whether it is in a transaction: asyncpg."""

    def is_in_transaction(self) -> bool: ...


class HasLanes(Protocol):
    """A store."""

    def lanes(self) -> Any: ...


Transaction: TypeAlias = HasCommit | HasTransaction | HasLanes
"""What `in_` takes. asyncpg's pool proxy is one too, though it shows no methods to a type checker."""


class Kind(Pushing[T]):
    """A sort of job: its name in the store, the type of its value, and the function that does it.

    Made by `queue.handle(...)` or `Kinds().handle(...)`; the function itself is still there to be called in a test.

    Example:
        >>> import asyncio
        >>> from fastqueue import Queue
        >>> queue = Queue("memory://")
        >>> @queue.handle("greet")
        ... async def greet(name: str) -> None:
        ...     print("hello", name)
        >>> greet
        <Kind 'greet'>
        >>> asyncio.run(greet("Ann"))
        hello Ann
    """

    def __init__(self, name: str, value_type: Any, handler: Handler | None, given: Given) -> None:
        self.name = check_name("kind", name)
        given.check(f"kind {name!r}")
        self.codec: Codec[T] = Codec(name, value_type)
        self.handler = handler
        self.given = given
        self.gave_up: Callable[..., Any] | None = None
        self.gave_up_is_async = False
        self.schedules: list[Scheduled] = []
        self._options: Options | None = None
        self._road: Road | None = None
        self._own: Pushing[T] | None = None
        if isinstance(given.unique, Unique):
            check_by(name, value_type, given.unique)

    def __repr__(self) -> str:
        return f"<Kind {self.name!r}>"

    @property
    def options(self) -> Options:
        """How its jobs are run.

        Raises:
            RegistrationError: no queue includes the kind yet.
        """
        if self._options is None:
            raise self._homeless()
        return self._options

    def join(self, road: Road, options: Options) -> None:
        """Become a kind of a queue."""
        if self._road is not None and self._road is not road:
            raise RegistrationError(
                f"kind {self.name!r} belongs to another queue already; define it again for this one"
            )
        self._road, self._options, self._own = road, options, road.own_store(self)
        for scheduled in self.schedules:
            road.schedule(self, scheduled)

    def in_(self, tx: Transaction, /) -> Pushing[T]:
        """Push inside a transaction that is yours: kept if it commits, gone if it does not.

        Args:
            tx: A SQLAlchemy session or connection, async or sync, an asyncpg, psycopg, aiosqlite, sqlite3, asyncmy or
                aiomysql connection with an open transaction on the queue's database, or another store.

        Raises:
            TransactionRefused: it is none of these.
            Unsupported: the store has no transactions to join.
        """
        return self.road.transaction_of(tx, self)

    def schedule(
        self, when: Schedule, value: T, *, name: str | None = None, missed: Literal["one", "skip"] = "one"
    ) -> None:
        """Push a job with `value` at each time of a schedule, once over all instances.

        Args:
            when: `every(...)`, `cron(...)`, or any object with `next(after) -> datetime | None`.
            value: What each run is pushed with.
            name: What the store remembers the schedule by. Default: the kind's name.
            missed: What becomes of a run that came due while nothing ran: "one" runs once, whatever number was missed;
                "skip" drops it when the next one is due already.

        Raises:
            OptionError: `when` is no schedule, or `missed` is neither of the two.
            ValueRefused: the value would not come back as it went in.
            RegistrationError: the kind has a schedule of that name, or the queue has run already.
            Unsupported: the store keeps no schedules.
        """
        name = check_name("schedule", name or self.name)
        if not callable(getattr(when, "next", None)):
            raise OptionError(f"kind {self.name!r}: schedule({when!r}) is no schedule; use every(...) or cron(...)")
        if missed not in ("one", "skip"):
            raise OptionError(f"kind {self.name!r}: missed={missed!r}; it takes 'one' or 'skip'")
        if any(scheduled.name == name for scheduled in self.schedules):
            raise RegistrationError(f"kind {self.name!r} has a schedule {name!r} already; give this one a name=")
        self._check_open("schedule")
        scheduled = Scheduled(name, when, self.codec.encode(value), value, missed)
        if self._road is not None:
            self._road.schedule(self, scheduled)
        self.schedules.append(scheduled)

    def on_fail(self, function: Callable[[T, Exception], N], /) -> Callable[[T, Exception], N]:
        """Decorator: called once when a job of this kind has failed for good and the store has kept it.

        It is called with the value and the error, has the kind's time limit, and the queue's stop does not cut it. What
        it raises is logged, and nothing else happens.

        Args:
            function: Takes the value and the error; `async def` or plain.

        Raises:
            KindError: it cannot be called with a value and an error.
            RegistrationError: the kind has one already, or the queue has run.
        """
        self._check_open("on_fail")
        if self.gave_up is not None:
            raise RegistrationError(f"kind {self.name!r} has an on_fail already; call both from one function")
        self.gave_up = _read_on_fail(self.name, function)
        self.gave_up_is_async = _is_async(function)
        return function

    async def __call__(self, value: T, run: Run | None = None) -> None:
        """Call the function itself, as a unit test does. Nothing is pushed.

        Args:
            value: What the job would be pushed with.
            run: What the handler is given as its second parameter, if it takes one. Default: a first attempt.

        Raises:
            RegistrationError: the kind has no handler here; what a handler raises comes as it is.
        """
        if self.handler is None:
            raise RegistrationError(f"kind {self.name!r} is only pushed here; call it where its handler is")
        attempt = run or Run(0, self.name, DEFAULT_QUEUE, 1, 0, {}, None)
        answer = self.handler.function(value, attempt) if self.handler.takes_run else self.handler.function(value)
        if isinstance(answer, Awaitable):
            await answer

    def new_jobs(
        self, values: Sequence[T], payloads: Sequence[str], how: How, *, run_at: Moment, carried: str | None = None
    ) -> list[NewJob]:
        """The jobs that one push of these values makes."""
        given = how.given
        options = replace(self.options, timeout_ms=given.timeout_ms) if given.sets_timeout else self.options
        unique = options.unique
        new_job = partial(
            NewJob,
            kind=self.name,
            run_at=run_at,
            queue=given.queue or options.queue,
            hold_ms=options.hold_ms,
            options=given.text(),
            at_once=options.at_once,
            carried=carried,
        )
        if unique is None:
            return [new_job(payload=payload) for payload in payloads]
        new_job = partial(new_job, latest=unique.latest)
        keys = [key_of(payload, unique, value) for value, payload in zip(values, payloads, strict=True)]
        return [
            new_job(payload=payload, unique_key=key, alone_key=key if unique.one_at_a_time else None)
            for payload, key in zip(payloads, keys, strict=True)
        ]

    def run_of(self, scheduled: Scheduled, run_at: Moment) -> NewJob:
        """The job that a schedule pushes for the moment `run_at`; it carries nothing."""
        (job,) = self.new_jobs([scheduled.value], [scheduled.payload], AS_IT_IS, run_at=run_at)
        return job._replace(schedule=scheduled.name)

    @property
    def road(self) -> Road:
        """The queue it belongs to.

        Raises:
            RegistrationError: none includes it yet.
        """
        if self._road is None:
            raise self._homeless()
        return self._road

    def _homeless(self) -> RegistrationError:
        return RegistrationError(f"kind {self.name!r} belongs to no queue yet; queue.include(kinds) gives it one")

    def _check_open(self, what: str) -> None:
        if self._road is not None and (reason := self._road.closed_to_registration):
            raise RegistrationError(f"kind {self.name!r}: {what} comes too late: {reason}")

    @property
    def _pushes(self) -> Pushing[T]:
        if self._own is None:
            raise self._homeless()
        return self._own

    def _check_awaitable(self) -> None:
        self._pushes._check_awaitable()

    def _push(self, values: Sequence[T], how: How) -> Coroutine[Any, Any, list[Pushed]]:
        return self._pushes._push(values, how)

    def _push_sync(self, values: Sequence[T], how: How) -> list[Pushed]:
        return self._pushes._push_sync(values, how)


def _read_on_fail(kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that can be called with the value and the error."""
    if not callable(function):
        raise KindError(f"kind {kind!r}: on_fail takes a function of the value and the error, not {function!r}")
    with suppress(ValueError):  # a function without a signature to look at
        try:
            signature(function).bind(None, None)
        except TypeError:
            raise KindError(
                f"kind {kind!r}: on_fail is called with the value and the error, which {function!r} cannot be: "
                "write (value, error: Exception)"
            ) from None
    return function


def _is_async(function: Callable[..., Any]) -> bool:
    return iscoroutinefunction(function if isroutine(function) else type(function).__call__)

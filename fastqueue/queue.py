"""The queue: kinds are registered with it, jobs are pushed through it, and it is run beside the app."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from types import TracebackType
from typing import Any, TypeVar

from fastqueue.asked import refuse_unkept, unkept
from fastqueue.carriers import Carrier, carriers_of
from fastqueue.clock import Clock, as_moment
from fastqueue.codec import check_name
from fastqueue.errors import OptionError, RegistrationError
from fastqueue.failures import each_failed, failed_jobs_of
from fastqueue.health import Health, health_of, hint_later
from fastqueue.home import Home
from fastqueue.inline import refuse_to_wait, run_inline
from fastqueue.job import NewJob, Pushed, StoredJob, Which
from fastqueue.kind import Kind, Scheduled
from fastqueue.kinds import Kinds
from fastqueue.limits import Limiter, Throttle
from fastqueue.options import Defaults
from fastqueue.outcome import Ran
from fastqueue.push import AfterCommit, InStore, InTransaction
from fastqueue.pushing import Pushing
from fastqueue.settings import Seconds, as_count, as_function, as_list, as_seconds
from fastqueue.store import Keep, Store
from fastqueue.stores import store_of
from fastqueue.stores.inline import InlineStore
from fastqueue.stores.joins import after_commit
from fastqueue.transaction import Transactions
from fastqueue.worker import Worker

__all__ = ["Queue"]

T = TypeVar("T")


class Queue(Kinds):
    """Registers kinds of jobs, pushes them, and runs them.

    Args:
        store: A URL (`sqlite:///app.db`, `postgresql://...`, `mysql://...`, `redis://...`, `memory://`, or `inline://`,
            where a push runs its job; the driver part of SQLAlchemy's URLs is ignored), or any `Store`.
        workers: How many jobs run at once in this process. Default 4.
        poll: How often the store is asked when nothing wakes the queue, in seconds. Default 1 s.
        grace: How long running jobs may go on when the queue is stopped, in seconds; then they are cancelled and put
            back. Default 10 s; None: 10 s. 0: each job's own time limit.
        queues: The named queues it serves, the first before the second whatever their times. Default: all, as one line.
        carry: What jobs bring from their push to their run, such as `[CarryRequestID()]`.
        observe: Called with a `Ran` after each run. It is called on the event loop: it must be quick.
        defaults: What kinds take for options they were not given. Default: `Defaults()`.
        clock: The app's own clock, a function that gives an aware datetime. Default: the machine's, corrected to the
            store's where it has one.

    Raises:
        OptionError: a setting that cannot be; the message names it.
        MissingDriver: the store needs a package that is not installed.

    Example:
        >>> queue = Queue("memory://")
        >>> @queue.handle("greet")
        ... async def greet(name: str) -> None:
        ...     print("hello", name)
    """

    def __init__(
        self,
        store: Store | str,
        *,
        workers: int = 4,
        poll: Seconds = 1,
        grace: Seconds | None = 10,
        queues: Sequence[str] | None = None,
        carry: Sequence[Carrier] = (),
        observe: Callable[[Ran], object] | None = None,
        defaults: Defaults | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(defaults, Defaults | None):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"defaults={defaults!r}; it takes Defaults(...)")
        self.store: Store = store_of(store)
        self.workers = as_count("workers", workers)
        self.poll = as_seconds("poll", poll) or 1.0
        self.grace = 10.0 if grace is None else as_seconds("grace", grace)
        self.queues = None if queues is None else [check_name("queue", name) for name in as_list("queues", queues)]
        self.carry = carriers_of(carry)
        self.observe = as_function("observe", observe)
        self.defaults = defaults or Defaults()
        self.clock = Clock(as_function("clock", clock))
        self.state = "never started"
        self.keeps_carried = Keep.CARRIED in self.store.keeps
        self.home = Home(self.store, self.clock)
        self.schedules: list[tuple[Kind[Any], Scheduled]] = []
        self.worker: Worker | None = None
        self._factory: object = None
        self._started = False
        self._hinted = False
        self._transactions = Transactions(self)

    def __repr__(self) -> str:
        return f"<Queue on {self.store.name}: {len(self._kinds)} kinds, {self.state}>"

    # -- registering -----------------------------------------------------------------------------------------------

    def include(self, kinds: Kinds | Callable[[], Kinds]) -> None:
        """Join kinds that were defined without the queue.

        Args:
            kinds: A `Kinds`, or a function that makes one, called now: handlers can be built from the app's services
                there. It must not push.

        Raises:
            RegistrationError: a name has a handler already, or the queue has run.
        """
        if not isinstance(kinds, Kinds) and callable(kinds):
            self._factory = kinds
            try:
                kinds = kinds()
            finally:
                self._factory = None
        if not isinstance(kinds, Kinds):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise RegistrationError(f"include takes Kinds, or a function that makes them, and not {kinds!r}")
        for kind in kinds:
            self._add(kind)

    def _add(self, kind: Kind[Any]) -> Kind[Any]:
        if reason := self.closed_to_registration:
            raise RegistrationError(f"kind {kind.name!r} comes too late: {reason}")
        options = kind.given.resolved(self.defaults)
        refuse_unkept(self.store, kind.name, options)
        super()._add(kind)
        kind.join(self, options)
        return kind

    def schedule(self, kind: Kind[Any], scheduled: Scheduled) -> None:
        """Take up a kind's schedule; called by `kind.schedule(...)`."""
        if self.store.schedules is None:
            raise unkept(self.store, kind.name, "schedule(...)", "schedules")
        if any(scheduled.name == other.name for _, other in self.schedules):
            raise RegistrationError(
                f"kind {kind.name!r}: there is a schedule {scheduled.name!r} already; give it another name="
            )
        self.schedules.append((kind, scheduled))

    def limiter_of(self, kind: Kind[Any]) -> Limiter | None:
        """What is asked before a job of the kind starts; None: nothing is."""
        rate = kind.options.rate
        if isinstance(rate, Throttle) and self.store.throttles is not None:
            return rate.on(self.store.throttles, self.clock.now)
        return rate

    @property
    def kinds(self) -> dict[str, Kind[Any]]:
        """The kinds it knows, by name."""
        return dict(self._kinds)

    @property
    def closed_to_registration(self) -> str | None:
        """Why nothing can be registered any more; None: it can."""
        return "the queue has run; register before queue.run() or the app's start" if self._started else None

    def refuse_while_registering(self, kinds: Sequence[Kind[Any]]) -> None:
        """Refuse a push from inside the factory that `include` is calling, where nothing could await it."""
        if self._factory is not None:
            raise RegistrationError(
                f"push of {kinds[0].name!r} inside {self._factory!r}, which makes the kinds: push after include()"
            )

    # -- pushing ---------------------------------------------------------------------------------------------------

    def own_store(self, *kinds: Kind[T]) -> Pushing[T]:
        """The pushes of kinds into this queue's store, each value to each kind, all or none."""
        return InStore(self, kinds)

    def transaction_of(self, handle: object, *kinds: Kind[T]) -> Pushing[T]:
        """The pushes of kinds into a transaction of the app's; called by `kind.in_(tx)`."""
        self.refuse_while_registering(kinds)
        if isinstance(handle, Store):
            return InStore(self, kinds, handle)
        if self.store.joins is None:
            return AfterCommit(self, kinds, lambda call, pushed: after_commit(handle, call, pushed=pushed))
        return InTransaction(self, kinds, self.store.joins.enlist(handle))

    @property
    def runs_inline(self) -> bool:
        """Whether a push runs its job, so that there is nothing for workers to do."""
        return isinstance(self.store, InlineStore)

    def accept(self, jobs: Sequence[NewJob]) -> None:
        """Refuse jobs that `keep` would refuse, where it cannot be called yet."""
        if self.runs_inline:
            refuse_to_wait(self, jobs)

    async def keep(self, jobs: Sequence[NewJob]) -> list[Pushed]:
        """Push jobs to the queue's own store, which is open, and wake its workers; on an inline queue, run them."""
        if self.runs_inline:
            return await run_inline(self, jobs)
        pushed = await self.home.coalescer.push(jobs, self.clock.now()) if jobs else []
        self.notice(jobs)
        return pushed

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """A transaction on the queue's own database, for apps that hold none by a library of theirs.

        It is committed at the end of the block, and then the workers are woken; it is rolled back when an exception
        leaves the block, a cancellation among them. Push in it by `kind.in_`.

        Returns:
            What to enter by `async with`. It gives the driver's own connection: asyncpg's, asyncmy's, or a sqlite3 one,
            whose calls are plain. Once it has begun, the driver's errors come as they are.

        Raises:
            Unsupported: the store can be part of no transaction.
            TwoTransactions: this task has one open already.
            TransactionEnded: it was ended within the block, or a statement failed and its error was caught.
            StoreUnavailable: it could not begin.

        Example:
            >>> async with queue.transaction() as connection:  # doctest: +SKIP
            ...     await connection.execute("INSERT INTO users (email) VALUES ($1)", email)
            ...     await verify_mail.in_(connection).push(VerifyMail(email=email))
        """
        return self._transactions.begin()

    def notice(self, jobs: Iterable[NewJob]) -> None:
        """Jobs went into the store: wake the workers for what is due, and have them look in time for the rest."""
        if self.state == "never started" and self.store.for_workers and not self._hinted:
            self._hinted = True
            hint_later(self)
        if self.worker is not None:
            self.worker.look_at(min((job.run_at for job in jobs), default=None))

    def committed(self, jobs: Iterable[NewJob]) -> None:
        """A transaction with jobs has committed: wake the workers here, and tell the other processes."""
        self.notice(jobs)
        if self.store.wakes is not None:
            self.home.soon(self.store.wakes.tell)

    def wake(self) -> None:
        """Look for work now. From any thread, any loop, or none.

        A push and the commit of a SQLAlchemy session do it by themselves; a transaction held by a bare driver
        connection is followed by this call, or its jobs are found at the next poll.
        """
        if self.worker is not None:
            self.worker.wake.set()

    # -- opening and closing ---------------------------------------------------------------------------------------

    async def ready(self) -> None:
        """Open the store on this event loop, if it is not."""
        await self.home.ready()

    async def close(self) -> None:
        """Close the store. A later push opens it again."""
        await self.home.close()

    async def __aenter__(self) -> Queue:
        await self.ready()
        self._hinted = True  # whoever opens it by hand knows that nothing runs
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # -- running ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run jobs as they come due, until cancelled.

        Cancelling it stops the claims, gives running jobs `grace` seconds, cancels those left and puts them back, and
        returns within 5 more, or 15 when the store does not answer. A failing store is logged and tried again; it never
        ends the run.

        Raises:
            RegistrationError: it runs already.
        """
        if self.worker is not None:
            raise RegistrationError("the queue runs already; one run() at a time in a process")
        self._started = True
        worker = self.worker = Worker(self)
        self.state = "running"
        try:
            await worker.run()
        finally:
            self.worker = None
            if self.state in ("running", "stopping"):
                self.state = "stopped"

    async def drain(self) -> int:
        """Run the jobs that are due now, one after the other, until none is; for tests and for programs that end.

        Schedules push nothing. Answers how many runs there were.

        Raises:
            StoreUnavailable: the store failed.
        """
        await self.ready()
        await self.home.after_commits()
        return await Worker(self).drain()

    async def health(self) -> Health:
        """How the queue does, for a health check."""
        return await health_of(self)

    # -- failed jobs -----------------------------------------------------------------------------------------------

    async def failed(self, *, limit: int | None = 100, kind: str | None = None) -> list[StoredJob]:
        """The jobs that failed for good, the latest first.

        Args:
            limit: At most this many. Default 100; None: all, however many they are.
            kind: Only of this kind. Default: any.

        Raises:
            OptionError: `limit` is not a whole number of at least 1.
            Unsupported: the store keeps no failed jobs.
        """
        if limit is not None:
            await self.ready()
            return await failed_jobs_of(self.store).page(Which(kind=kind), limit=as_count("limit", limit))
        return [job async for job in self.each_failed(kind=kind)]

    async def each_failed(
        self,
        *,
        kind: str | None = None,
        queue: str | None = None,
        error: str | None = None,
        since: datetime | None = None,
        before: datetime | None = None,
    ) -> AsyncIterator[StoredJob]:
        """Every job that failed for good, the latest first, read page by page. Those that fail meanwhile are left out.

        Args:
            kind: Only of this kind. Default: any.
            queue: Only of this named queue. Default: any.
            error: Only those with this in their error's text, letter by letter. Default: any.
            since: Only those that failed then or later, as an aware datetime. Default: any.
            before: Only those that failed before that, as an aware datetime. Default: any.

        Raises:
            OptionError: a moment that is no aware datetime.
            Unsupported: the store keeps no failed jobs.

        Example:
            >>> async def mailboxes(queue: Queue) -> list[str]:
            ...     return [job.payload async for job in queue.each_failed(kind="verify-mail", error="mailbox")]
        """
        which = Which(
            kind=kind,
            queue=queue,
            error=error,
            since=None if since is None else as_moment("since", since),
            before=None if before is None else as_moment("before", before),
        )
        await self.ready()
        async for job in each_failed(self.store, which):
            yield job

    async def run_again(self, id: int, *, at: datetime | None = None) -> bool:
        """Put a failed job back, from its first attempt; False: no failed job has this id.

        Args:
            id: The job's id.
            at: When it is due, as an aware datetime. Default: now.

        Raises:
            OptionError: `at` is no aware datetime.
            Unsupported: the store keeps no failed jobs.
        """
        await self.ready()
        due = self.clock.now() if at is None else as_moment("at", at)
        (found,) = await failed_jobs_of(self.store).run_again([id], at=due)
        self.wake()
        return found

    async def forget(self, id: int) -> bool:
        """Delete a failed job; False: no failed job has this id.

        Args:
            id: The job's id.

        Raises:
            Unsupported: the store keeps no failed jobs.
        """
        await self.ready()
        (found,) = await failed_jobs_of(self.store).forget([id])
        return found

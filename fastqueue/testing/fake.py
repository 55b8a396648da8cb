"""A queue for tests of an app: it remembers what was pushed, and runs it when the test says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, overload

from fastqueue.carriers import Carrier
from fastqueue.errors import RegistrationError
from fastqueue.job import NewJob, Pushed
from fastqueue.kind import Kind
from fastqueue.options import Defaults
from fastqueue.outcome import Ran
from fastqueue.queue import Queue
from fastqueue.settings import nearest
from fastqueue.stores.memory import MemoryStore
from fastqueue.testing.clock import FakeClock

__all__ = ["FakeQueue"]

T = TypeVar("T")


class FakeQueue(Queue):
    """A queue in memory that remembers what was pushed. Its jobs run when the test awaits `drain()`.

    It keeps everything a push may ask for, so every option of a kind is taken. A push in the transaction of a
    SQLAlchemy session comes right after its commit, and never after a rollback; the drivers' bare connections cannot
    tell of their commit and are refused. A lifespan starts no workers for it.

    Args:
        clock: What time it is. Default: a new `FakeClock`.
        carry, observe, defaults: As in `Queue`.

    Attributes:
        fake_clock: The clock, for the test to move: a job that is due later runs once it has.

    Example:
        >>> import asyncio
        >>> queue = FakeQueue()
        >>> @queue.handle("greet")
        ... async def greet(name: str) -> None:
        ...     print("hello", name)
        >>> greet.push_sync("Ann").new
        True
        >>> queue.pushed(greet)
        ['Ann']
        >>> asyncio.run(queue.drain())
        hello Ann
        1
    """

    def __init__(
        self,
        *,
        clock: FakeClock | None = None,
        carry: Sequence[Carrier] = (),
        observe: Callable[[Ran], object] | None = None,
        defaults: Defaults | None = None,
    ) -> None:
        self.fake_clock = clock or FakeClock()
        self._remembered: list[NewJob] = []
        store = _RememberingStore(self._remembered)
        super().__init__(store, clock=self.fake_clock, carry=carry, observe=observe, defaults=defaults)

    @classmethod
    @contextmanager
    def in_place_of(cls, queue: Queue, *, clock: FakeClock | None = None) -> Generator[FakeQueue]:
        """Within the block, what is pushed through an app's own queue goes to a fake, and nothing to its store.

        Args:
            queue: The app's queue; it is not running.
            clock: What time it is for it. Default: a new `FakeClock`.

        Raises:
            RegistrationError: the queue runs: put the fake in its place before the app starts.
        """
        if queue.worker is not None:
            raise RegistrationError("the queue runs already: put the fake in its place before the app starts")
        fake = cls(clock=clock, carry=queue.carry, observe=queue.observe, defaults=queue.defaults)
        fake._kinds, fake.schedules = queue._kinds, queue.schedules
        own = queue.store, queue.home, queue.clock, queue.keeps_carried
        queue.store, queue.home, queue.clock, queue.keeps_carried = fake.store, fake.home, fake.clock, True
        try:
            yield fake
        finally:
            queue.store, queue.home, queue.clock, queue.keeps_carried = own

    @overload
    def pushed(self, kind: Kind[T], /) -> list[T]: ...
    @overload
    def pushed(self, kind: str, /) -> list[Any]: ...
    def pushed(self, kind: Kind[Any] | str, /) -> list[Any]:
        """The values of the jobs of a kind that were pushed, in their order, whether they have run or not.

        A push that found its job waiting, as those of unique kinds do, added none.

        Args:
            kind: The kind, or its name.

        Raises:
            RegistrationError: the queue has no such kind.
        """
        found = self._known(kind)
        return [found.codec.decode(job.payload) for job in self.pushed_jobs(found)]

    def pushed_jobs(self, kind: Kind[Any] | str, /) -> list[NewJob]:
        """The same jobs as the store was given them: with when they are due, their queue, and what they carry.

        Raises:
            RegistrationError: the queue knows no such kind.
        """
        name = self._known(kind).name
        return [job for job in self._remembered if job.kind == name]

    def assert_pushed(self, kind: Kind[T], /, *values: T) -> None:
        """Fail unless exactly these values of a kind were pushed, in this order.

        Raises:
            AssertionError: with what was pushed, of this kind and of others.
        """
        __tracebackhide__ = True
        found = self.pushed(kind)
        if found != list(values):
            told = f"of {kind.name!r} was expected\n{_listed(values)}\nand was pushed\n{_listed(found)}"
            raise AssertionError(told + self._others(kind))

    def assert_nothing_pushed(self) -> None:
        """Fail if anything was pushed.

        Raises:
            AssertionError: with what was pushed.
        """
        __tracebackhide__ = True
        if self._remembered:
            told = [f"{job.kind} {job.payload}" for job in self._remembered]
            raise AssertionError(f"nothing was expected, and was pushed\n{_listed(told, shown=str)}")

    def _known(self, kind: Kind[Any] | str) -> Kind[Any]:
        name = kind if isinstance(kind, str) else kind.name
        found = self._kinds.get(name)
        if found is None or (isinstance(kind, Kind) and found is not kind):
            raise RegistrationError(f"the queue has no kind {name!r} like this; {nearest(name, self._kinds)}")
        return found

    def _others(self, kind: Kind[Any]) -> str:
        counts = Counter(job.kind for job in self._remembered if job.kind != kind.name)
        told = ", ".join(f"{name!r} {count} times" for name, count in sorted(counts.items()))
        return f"\nof other kinds: {told}" if told else ""


class _RememberingStore(MemoryStore):
    name = "fake"
    for_workers = False

    def __init__(self, remembered: list[NewJob]) -> None:
        super().__init__()
        self._remembered = remembered

    def take(self, jobs: Sequence[NewJob]) -> list[Pushed]:
        pushed = super().take(jobs)
        self._remembered += [job for job, one in zip(jobs, pushed, strict=True) if one.new]
        return pushed


def _listed(values: Sequence[object], *, shown: Callable[[object], str] = repr) -> str:
    return "\n".join(f"    {shown(value)}" for value in values) or "    nothing"

"""At home in FastAPI: jobs that are kept with the transaction of the request, or not at all.

Example:
    ```python
    SessionDep = Annotated[AsyncSession, Depends(session, scope="function")]
    jobs = transactional(queue, SessionDep)
    JobsDep = Annotated[Jobs, Depends(jobs)]


    @app.post("/register")
    async def register(form: Register, db: SessionDep, jobs: JobsDep) -> None:
        user = await add_user(db, form)
        await jobs(verify_mail).push(VerifyMail(user=user.id))
    ```
"""

# Annotations here are read by FastAPI, and hold values that only the function around them knows: no future import.

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from typing import Annotated, Any, Protocol, TypeVar, get_args, get_origin

from fastapi import Depends
from fastapi.params import Depends as Marker
from fastapi.requests import HTTPConnection

from fastqueue.errors import OptionError, RegistrationError, TransactionEnded, TwoTransactions
from fastqueue.job import Pushed
from fastqueue.kind import Kind, Transaction
from fastqueue.pushing import How, Pushing
from fastqueue.queue import Queue
from fastqueue.starlette import CarryRequestID, RequestIDMiddleware, combine, health, lifespan, request_id

__all__ = [
    "CarryRequestID",
    "Jobs",
    "RequestIDMiddleware",
    "combine",
    "health",
    "lifespan",
    "request_id",
    "transactional",
]

T = TypeVar("T")


class Jobs(Protocol):
    """The pushes of any kind into the transaction of a request: `jobs(kind)` is `kind.in_(the request's session)`."""

    def __call__(self, kind: Kind[T], /) -> Pushing[T]:
        """The pushes of a kind.

        Raises:
            TransactionEnded: the transaction is over, as it is in a streaming body or a background task.
            RegistrationError: the kind is none of the queue's that the dependency was made for.
        """
        ...


class _Opened:
    """The transaction of a request, for as long as something commits it."""

    def __init__(self, queue: Queue, transaction: Transaction) -> None:
        self._queue = queue
        self._transaction = transaction
        self.is_open = True

    def __call__(self, kind: Kind[T], /) -> Pushing[T]:
        self.refuse_its_end(kind)
        if self._queue.kinds.get(kind.name) is not kind:
            raise RegistrationError(
                f"jobs({kind.name!r}): the kind belongs to another queue than {self._queue!r}, or to none: make a "
                "dependency of its own queue, transactional(queue, SessionDep), or join it by queue.include(kinds)"
            )
        return _Within(self, kind, kind.in_(self._transaction))

    def refuse_its_end(self, kind: Kind[Any]) -> None:
        """Refuse a push of a kind when the transaction is over."""
        if not self.is_open:
            raise TransactionEnded(
                f"jobs({kind.name!r}) came after the end of its transaction, where nothing commits it any more: "
                "push by itself, `await kind.push(value)`, or before the response is sent"
            )


class _Within(Pushing[T]):
    """Pushes that may be kept for longer than their transaction lasts."""

    def __init__(self, opened: _Opened, kind: Kind[T], pushing: Pushing[T]) -> None:
        self._opened = opened
        self._kind = kind
        self._pushing = pushing

    def _push(self, values: Sequence[T], how: How) -> Coroutine[Any, Any, list[Pushed]]:
        return self._pushing._push(values, how)

    def _push_sync(self, values: Sequence[T], how: How) -> list[Pushed]:
        self._opened.refuse_its_end(self._kind)
        return self._pushing._push_sync(values, how)

    def _check_awaitable(self) -> None:
        self._opened.refuse_its_end(self._kind)
        self._pushing._check_awaitable()


def transactional(
    queue: Queue, dependency: Any, *, of: Callable[[Any], Transaction] = lambda value: value
) -> Callable[..., Coroutine[Any, Any, Jobs]]:
    """A dependency whose pushes go with the session that the routes use.

    Its value is closed when the session's dependency is left: a push that comes later would be kept by nobody's commit.

    Args:
        queue: Whose kinds are pushed; those of another are refused, for their jobs may be in another database.
        dependency: The routes' own alias, `Annotated[AsyncSession, Depends(session, scope="function")]`, by which they
            share one session; or a function, which means exactly `Depends(function)`.
        of: From the dependency's value to its session or connection. Default: it is that itself.

    Returns:
        A function for `Depends`, which tests may override.

    Raises:
        OptionError: it is no dependency, or one that gives each use a session of its own.
        TwoTransactions: by the dependency, in a request whose route has two sessions of it by different scopes.

    Example:
        >>> jobs = transactional(queue, UnitOfWorkDep, of=lambda work: work.session)  # doctest: +SKIP
    """
    alias, marker = _read(dependency)
    session = marker.dependency or get_args(alias)[0]
    checked: dict[int, Any] = {}

    async def opened(value: Any) -> AsyncGenerator[_Opened]:
        within = _Opened(queue, of(value))
        try:
            yield within
        finally:
            within.is_open = False

    opened.__annotations__["value"] = alias

    async def jobs(within: Annotated[_Opened, Depends(opened, scope=marker.scope)], http: HTTPConnection) -> Jobs:
        route = http.scope.get("route")
        if id(route) not in checked:
            _refuse_two(route, session)
            checked[id(route)] = route
        return within

    return jobs


def _read(dependency: Any) -> tuple[Any, Marker]:
    """A dependency as an annotation, and the marker in it that FastAPI goes by."""
    dependency = getattr(dependency, "__value__", dependency)  # `type SessionDep = ...`
    if isinstance(dependency, Marker):
        dependency = Annotated[Any, dependency]
    elif get_origin(dependency) is not Annotated and callable(dependency):
        dependency = Annotated[Any, Depends(dependency)]
    markers = [each for each in get_args(dependency)[1:] if isinstance(each, Marker)]
    if not markers:
        raise OptionError(
            f"transactional(queue, {dependency!r}): it takes the alias that the routes have, "
            'SessionDep = Annotated[AsyncSession, Depends(session, scope="function")]'
        )
    if not markers[-1].use_cache:
        raise OptionError(
            f"transactional(queue, {dependency!r}): with use_cache=False the routes and their jobs "
            "would each have a session of their own; leave it out"
        )
    return dependency, markers[-1]


def _refuse_two(route: Any, session: Callable[..., Any]) -> None:
    """Refuse a route in which the session's dependency is entered twice: what it writes and pushes would be two."""
    uses = list(_uses(getattr(route, "dependant", None), session))
    if len(set(uses)) > 1:
        raise TwoTransactions(
            f"the route {route.path} depends on {getattr(session, '__name__', session)} with the scopes "
            f"{' and '.join(sorted(set(uses)))}, which are two sessions: what it writes would be committed apart from "
            "the jobs it pushes; use one alias everywhere, "
            'SessionDep = Annotated[AsyncSession, Depends(session, scope="function")]'
        )


def _uses(dependant: Any, session: Callable[..., Any]) -> Iterator[str]:
    """The scopes at which a route's tree of dependencies, of which FastAPI has no public account, enters a session."""
    for each in getattr(dependant, "dependencies", ()):
        if each.call == session:
            # Left out, it is that of the request.
            yield each.scope or "request"
        yield from _uses(each, session)

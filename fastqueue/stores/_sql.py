"""What the SQL stores share: named statements, and verbs that are told apart from how they are driven.

A verb that touches the database is a generator: it yields a `Call` (a named statement with its values), is sent what
came back as `Got`, and returns its answer. A driver's error is thrown into it at the yield. One such verb serves an
async pool, a thread with `sqlite3` and a session of the app's alike.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import chain
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from fastqueue.errors import OptionError

__all__ = ["Call", "Got", "Statement", "Statements", "Steps", "Tables", "read", "run", "run_sync"]

R = TypeVar("R")

Style: TypeAlias = Literal["numeric", "qmark", "format"]
"""How a driver writes a place in a statement: $1, ? or %s."""

_NAME = re.compile(r"^-- name: (?P<name>[a-z_.]+)\s*$", re.MULTILINE)
_RELIES = re.compile(r"^-- relies on: (?P<index>.+?)\s*$", re.MULTILINE)
_PLACE = re.compile(r"'(?:[^']|'')*'|--[^\n]*|(?<![:\w]):(?P<name>[a-z_][a-z0-9_]*)|(?P<percent>%)")
_GROUP = re.compile(r"(?<=\bVALUES )\([^()]*\)")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")


class Got(NamedTuple):
    """What a statement gave: its rows, how many rows it touched, and the id it made, where the driver tells."""

    rows: Sequence[Sequence[Any]]
    touched: int
    last_id: int | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """A named statement of a dialect.

    Attributes:
        text: Its SQL, with `:name` where a value goes.
        relies_on: The index it needs to stay cheap; None: none.
    """

    name: str
    text: str
    relies_on: str | None = None

    def render(self, style: Style) -> tuple[str, tuple[str, ...]]:
        """The text for a driver, and the names of the values in the order in which it wants them."""
        return _render(self.text, style)

    def bind(self, style: Style, values: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
        """The text for a driver and the values in its order."""
        text, names = _render(self.text, style)
        return text, tuple(map(values.__getitem__, names))

    def for_rows(self, rows: Sequence[Mapping[str, Any]]) -> Call:
        """One call for several rows, of a statement all of whose places stand in its one `VALUES (...)`.

        Each number of rows is another text, to be kept by whoever prepares it: use few of them.
        """
        text, columns, places = _repeat(self.text, len(rows))
        values = chain.from_iterable(map(itemgetter(*columns), rows))
        return Call(Statement(self.name, text, self.relies_on), dict(zip(places, values, strict=True)))


class Call(NamedTuple):
    """A statement to run, with its values by name.

    Attributes:
        fresh: It must see what others have committed by now: where the transaction is the app's and sees an older
            state, ask it on a connection of the store's own instead.
    """

    statement: Statement
    values: Mapping[str, Any]
    fresh: bool = False


Steps: TypeAlias = Generator[Call, Got, R]
"""A verb: statements out, what they gave in, its answer at the end."""


async def run(steps: Steps[R], execute: Callable[[Call], Awaitable[Got]]) -> R:
    """Drive a verb with an awaited driver."""
    try:
        call = next(steps)
        while True:
            try:
                got = await execute(call)
            except Exception as error:
                call = steps.throw(error)
            else:
                call = steps.send(got)
    except StopIteration as end:
        answer: R = end.value
        return answer


def run_sync(steps: Steps[R], execute: Callable[[Call], Got]) -> R:
    """Drive a verb with a driver of plain calls."""
    try:
        call = next(steps)
        while True:
            try:
                got = execute(call)
            except Exception as error:
                call = steps.throw(error)
            else:
                call = steps.send(got)
    except StopIteration as end:
        answer: R = end.value
        return answer


@dataclass(frozen=True)
class Tables:
    """The names of a store's tables: a prefix of the app's choice, and a schema where the database has them.

    Raises:
        OptionError: prefix or schema is not letters, digits and underscores, or is longer than 40.
    """

    prefix: str = "fastqueue_"
    schema: str | None = None
    quote: str = '"'

    def __post_init__(self) -> None:
        for what, name in (("prefix", self.prefix), ("schema", self.schema)):
            if name is not None and not _IDENTIFIER.fullmatch(name):
                raise OptionError(
                    f"the {what} {name!r} cannot name tables: letters, digits and _, not a digit first, at most 40"
                )

    def name(self, table: str) -> str:
        """A table's or index's bare name."""
        return f"{self.prefix}{table}"

    def quoted(self, table: str) -> str:
        """A table's name as SQL takes it."""
        own = f"{self.quote}{self.name(table)}{self.quote}"
        return own if self.schema is None else f"{self.quote}{self.schema}{self.quote}.{own}"

    def fill(self, text: str) -> str:
        """SQL text with each `{table}` replaced by that table's name, and `{bare:name}` by the bare one."""
        text = re.sub(r"\{bare:([a-z_]+)\}", lambda found: self.name(found[1]), text)
        return re.sub(r"\{([a-z_]+)\}", lambda found: self.quoted(found[1]), text)


class Statements:
    """The named statements of one dialect, read from its file under `sql/`, for one set of tables."""

    def __init__(self, dialect: str, tables: Tables) -> None:
        self.dialect = dialect
        self._all = {name: Statement(name, tables.fill(text), index) for name, text, index in read(dialect)}

    def __getitem__(self, name: str) -> Statement:
        return self._all[name]

    def __iter__(self) -> Iterator[Statement]:
        return iter(self._all.values())


def read(dialect: str) -> list[tuple[str, str, str | None]]:
    """Name, text and relied-on index of each statement in a dialect's file, in the file's order."""
    source = (files("fastqueue.stores") / "sql" / f"{dialect}.sql").read_text(encoding="utf-8")
    parts = _NAME.split(source)[1:]
    found: list[tuple[str, str, str | None]] = []
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        index = _RELIES.search(body)
        text = "\n".join(line for line in body.splitlines() if not line.startswith("--")).strip().rstrip(";")
        found.append((name, text, index["index"] if index and index["index"] != "nothing" else None))
    return found


@lru_cache(maxsize=64)
def _repeat(text: str, times: int) -> tuple[str, list[str], list[str]]:
    """A text with its `VALUES (...)` several times; the names of its places before, and after."""
    (group,) = _GROUP.findall(text)
    columns = [found["name"] for found in _PLACE.finditer(group)]
    groups = (_PLACE.sub(rf"\g<0>_{n}", group) for n in range(times))
    return text.replace(group, ", ".join(groups)), columns, [f"{name}_{n}" for n in range(times) for name in columns]


@lru_cache(maxsize=1024)
def _render(text: str, style: Style) -> tuple[str, tuple[str, ...]]:
    names: list[str] = []

    def place(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None:
            return found[0].replace("%", "%%") if style == "format" else found[0]
        if style != "numeric":
            names.append(name)
            return "?" if style == "qmark" else "%s"
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return _PLACE.sub(place, text), tuple(names)

"""Statements that take as many rows as they are given: MySQL can be sent no array."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fastqueue.stores._sql import Statement, Statements, Style, Tables

__all__ = ["MySQLStatements"]

_REPEATED = re.compile(r"\[(?P<each>[^\[\]|]+)\|(?P<between>[^\[\]|]+)\]")
_MARKS: Mapping[Style, str] = {"format": "%s", "qmark": "?"}


class MySQLStatements(Statements):
    """The statements of the dialect for one set of tables; see the head of its file for what it adds to SQL."""

    def __init__(self, tables: Tables) -> None:
        super().__init__("mysql", tables)
        self._all = {each.name: Repeating(each.name, each.text, each.relies_on) for each in self}


@dataclass(frozen=True, slots=True)
class Repeating(Statement):
    """A statement in which `[ text | between ]` stands once for each of the values named `rows`."""

    def bind(self, style: Style, values: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
        texts: list[str] = []
        bound: list[Any] = []
        for part, between in _parts(self.text):
            rows: Sequence[Mapping[str, Any]] = [values] if between is None else values["rows"]
            text, names = part.render(style)
            repeats: list[str] = []
            for row in rows:
                given = [row[name] for name in names]
                if list in map(type, given):
                    repeats.append(_spread(text, given, _MARKS[style]))
                    for value in given:
                        bound.extend(_flat(value))
                else:
                    repeats.append(text)
                    bound += given
            texts.append((between or "").join(repeats))
        return "".join(texts), tuple(bound)


@lru_cache(maxsize=512)
def _parts(text: str) -> list[tuple[Statement, str | None]]:
    """A text cut into what stands once, and what is repeated with something between; each part is rendered alone."""
    parts: list[tuple[Statement, str | None]] = []
    begin = 0
    for found in _REPEATED.finditer(text):
        parts += [(Statement("", text[begin : found.start()]), None), (Statement("", found["each"]), found["between"])]
        begin = found.end()
    return [*parts, (Statement("", text[begin:]), None)]


def _spread(text: str, given: Sequence[Any], mark: str) -> str:
    """The text with as many places for a list as it has members; for members that are tuples, tuples of places."""
    first, *rest = text.split(mark)
    return first + "".join(_places(value, mark) + after for value, after in zip(given, rest, strict=True))


def _places(value: Any, mark: str) -> str:
    if not isinstance(value, list):
        return mark
    return ", ".join(f"({', '.join([mark] * len(each))})" if isinstance(each, tuple) else mark for each in value)


def _flat(value: Any) -> list[Any]:
    if not isinstance(value, list):
        return [value]
    return [member for each in value for member in (each if isinstance(each, tuple) else (each,))]

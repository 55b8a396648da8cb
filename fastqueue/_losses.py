"""What a value loses on its way through JSON, and the place in it where that happens.

Nothing here runs for a value that is kept as it is: these walks are taken to say what is wrong, not whether.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

__all__ = ["NOT_KEPT", "difference", "equal", "json_path", "unkeepable"]

NOT_KEPT = re.compile("[\0\ud800-\udfff]")
"""The characters that a text must not hold: not every database keeps a NUL, and a lone surrogate is no text."""

_DEEPEST = 256
"""Levels that a walk goes down: pydantic writes no more of them."""

_TOO_LONG = 10**4300
"""The smallest integer of more digits than are read back."""


def json_path(steps: tuple[Any, ...]) -> str:
    """The place of a part, from the keys and indexes that lead to it.

    Example:
        >>> json_path(("items", 2, "first name"))
        "value.items[2]['first name']"
    """
    return "value" + "".join(_step(step) for step in steps)


def equal(value: Any, loaded: Any) -> bool:
    """Whether two values say that they are equal; one that cannot say so in one word is not."""
    try:
        return bool(value == loaded)
    except Exception:
        return False


def unkeepable(value: Any) -> str | None:
    """The first part of a value that JSON or a store cannot hold: where, and what it is; None: there is none."""
    for place, part in _parts(value):
        found = _fault_of_keys(place, part) if isinstance(part, Mapping) else _fault(place, part)
        if found:
            return found
    return None


def difference(value: Any, loaded: Any, place: str = "value") -> str | None:
    """The first part of a value that came back as another: where, and what from what; None: there is none.

    Parts that have no equality of their own, and no members to compare, count as equal.
    """
    if equal(value, loaded) or _one_moment(value, loaded):
        return None
    if loaded is not None and not _alike(value, loaded):
        return f"{place} went in as {_sort(value)} and came back as {_sort(loaded)}; declare the type it is to have"
    members, kept = _members(value), _members(loaded)
    if loaded is None or (members is None and _unequal(value, loaded)):
        return f"{place} went in as {_show(value)} and came back as {_show(loaded)}"
    return None if members is None or kept is None else _difference_of_members(members, kept, place)


def _difference_of_members(members: dict[Any, Any], kept: dict[Any, Any], place: str) -> str | None:
    for step, member in members.items():
        if step not in kept:
            return f"{place}{_step(step)} would not come back; the declared type has no place for it"
        if found := difference(member, kept[step], place + _step(step)):
            return found
    added = next((step for step in kept if step not in members), None)
    return None if added is None else f"{place}{_step(added)} was not there and came back as {_show(kept[added])}"


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Each part of a value with its place, from the outside in, the first members first."""
    seen: set[int] = set()
    waiting = [("value", 0, value)]
    while waiting:
        place, depth, part = waiting.pop()
        yield place, part
        if depth == _DEEPEST or id(part) in seen or not (members := _members(part)):
            continue
        seen.add(id(part))
        waiting += [(place + _step(step), depth + 1, member) for step, member in reversed(members.items())]


def _members(value: Any) -> dict[Any, Any] | None:
    """What a value holds, by key, name or index; None: it is a part without parts."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, BaseModel):
        declared = {name: value.__dict__[name] for name in type(value).model_fields if name in value.__dict__}
        return declared | (value.__pydantic_extra__ or {}) | (value.__pydantic_private__ or {})
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value) if hasattr(value, field.name)}
    if isinstance(value, list | tuple):
        return dict(zip(getattr(value, "_fields", range(len(value))), value, strict=True))
    return None


def _fault(place: str, part: Any) -> str | None:
    if isinstance(part, str) and (character := NOT_KEPT.search(part)):
        return f"{place} holds {_name_of(character[0])}; take it out before the push"
    if isinstance(part, float) and not math.isfinite(part):
        return f"{place} is {part}, which JSON does not have; push None or a text in its place"
    if isinstance(part, int) and not -_TOO_LONG < part < _TOO_LONG:
        return f"{place} is an integer of more than 4300 digits, which are not read back; push it as a text"
    return None


def _fault_of_keys(place: str, part: Mapping[Any, Any]) -> str | None:
    written: dict[str, Any] = {}
    for key in part:
        if found := _fault(f"the key {_show(key)} of {place}", key):
            return found
        if (other := written.setdefault(str(key), key)) is not key:
            return f"{place} has the keys {_show(other)} and {_show(key)}, which JSON makes one; rename one of them"
    return None


def _name_of(character: str) -> str:
    return "a NUL character" if character == "\0" else f"the lone surrogate \\u{ord(character):x}"


def _one_moment(value: Any, loaded: Any) -> bool:
    # In the hour that a clock repeats or skips, moments of two zones are never equal, by a rule of Python's own.
    if not (isinstance(value, datetime) and isinstance(loaded, datetime)) or None in (value.tzinfo, loaded.tzinfo):
        return False
    return value.astimezone(UTC) == loaded.astimezone(UTC)


def _alike(value: Any, loaded: Any) -> bool:
    return type(value) is type(loaded) or (isinstance(value, Mapping) and isinstance(loaded, Mapping))


def _unequal(value: Any, loaded: Any) -> bool:
    equality: Any = type(value).__eq__
    try:
        return equality is not object.__eq__ and bool(value != loaded)
    except Exception:
        return False


def _step(step: Any) -> str:
    return f".{step}" if isinstance(step, str) and step.isidentifier() else f"[{_show(step)}]"


def _sort(value: Any) -> str:
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _show(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        text = _sort(value)
    return text if len(text) <= 60 else f"{text[:59]}…"

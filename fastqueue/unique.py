"""Which jobs of a kind are the same job: the option, and the key that a store compares.

A key is the SHA-256 of the canonical JSON of a value, or of a part of it. It is computed here, at the push, and never
from what a database gives back, so that it is the same in every process, on every store and in every release.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import iscoroutinefunction
from itertools import groupby
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from fastqueue.codec import adapter_of, schema_of
from fastqueue.errors import KindError, OptionError, ValueRefused

__all__ = ["Unique", "canonical", "check_by", "key_of"]

_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)
_write = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Unique:
    """Option of a kind: one waiting job for each value. A push while it waits adds none, and succeeds.

    A job that runs is not waiting: a push meanwhile adds another.

    Attributes:
        latest: Whether such a push also moves the waiting job to its own time, earlier or later. Default False.
        one_at_a_time: Whether two jobs of the same value never run at once, either. Default False.
        by: The part of a value that makes two the same: the Python name of a field, several names, or a plain function
            of the value whose answer can be written as JSON. Default None: the whole value.

    Raises:
        OptionError: An attribute cannot be what it is.

    Example:
        >>> Unique(by="user")
        Unique(latest=False, one_at_a_time=False, by=('user',))
    """

    latest: bool = False
    one_at_a_time: bool = False
    by: str | Sequence[str] | Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        for option in ("latest", "one_at_a_time"):
            given = getattr(self, option)
            if not isinstance(given, bool):
                raise OptionError(f"Unique({option}={given!r}): it takes True or False")
        if not (self.by is None or callable(self.by)):
            object.__setattr__(self, "by", _names(self.by))
        elif iscoroutinefunction(self.by):
            raise OptionError(f"Unique(by={self.by!r}): a key is made without awaiting; it takes a plain function")


def canonical(payload: str) -> bytes:
    """The one form of a JSON text that all texts of the same value share.

    Keys are sorted at every depth, there are no spaces, and what is not ASCII is escaped. Texts and keys that differ
    only in how their accents are composed are one (Unicode's form NFC). A number stays what the text says: `1` and
    `1.0` are two, since the type of a value decides which of them is written; `-0.0` is `0.0`, and `1e2` is `100.0`.

    Args:
        payload: JSON, as `Codec.encode` wrote it.

    Raises:
        ValueError: It is not JSON.

    Example:
        >>> canonical('{"b": [1, 1.50], "a": "\u00e9"}')
        b'{"a":"\\\\u00e9","b":[1,1.5]}'
    """
    return _canonical(json.loads(payload))


def key_of(payload: str, unique: Unique, value: Any) -> str:
    """The key of a job: two waiting jobs of a kind with the same key are the same.

    Args:
        payload: The JSON of the value.
        unique: The kind's option; its `by` says which part of the value counts.
        value: The value itself, for a `by` that is a function, or that names fields.

    Returns:
        64 hexadecimal digits.

    Raises:
        ValueRefused: The value does not have the part, or a function's answer cannot be written as JSON.

    Example:
        >>> key_of('{"user":7,"note":"a"}', Unique(by="user"), {"user": 7, "note": "a"})[:12]
        'f50ddcc7c123'
    """
    if unique.by is None:
        form = canonical(payload)
    elif callable(unique.by):
        form = _form_of_answer(unique.by, value)
    else:
        form = _canonical(_picked(json.loads(payload), value, _names(unique.by)))
    return hashlib.sha256(form).hexdigest()


def check_by(kind: str, type: Any, unique: Unique) -> None:
    """See, at registration, that keys can be made of the values of a kind.

    Args:
        kind: The kind's name, for messages.
        type: The type of its values.
        unique: The kind's option.

    Raises:
        KindError: `by` names a field that the type does not declare, or the part that counts holds a set, which has
            another order in each process.

    Example:
        >>> from dataclasses import make_dataclass
        >>> check_by("verify-mail", make_dataclass("Mail", [("user", int)]), Unique(by="usr"))
        Traceback (most recent call last):
        fastqueue.errors.KindError: kind 'verify-mail' is unique by 'usr', a field that its value does not have; \
did you mean 'user'?
    """
    if callable(unique.by):
        return
    adapter = adapter_of(kind, type)
    declared = _declared(schema_of(adapter, mode="validation", by_alias=False), type)
    names = () if unique.by is None else _names(unique.by)
    for name in names:
        if declared is not None and name not in declared:
            raise KindError(
                f"kind {kind!r} is unique by {name!r}, a field that its value does not have; {_advice(name, declared)}"
            )
    # Looked for in what is written, since a field may have a serializer that puts its set in order.
    written = schema_of(adapter, by_alias=False)
    fields = _declared(written, type) or {}
    for name in names or declared or ("value",):
        if _holds_a_set(fields.get(name, written), written.get("$defs", {}), set()):
            raise KindError(
                f"kind {kind!r} is unique by its {name}, which holds a set, and a set has another order in each "
                "process; make it a sorted list, or let other fields count: Unique(by=...)"
            )


def _names(by: Any) -> tuple[str, ...]:
    names = (by,) if isinstance(by, str) else tuple(by) if isinstance(by, Sequence) else ()
    if not names or not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise OptionError(f"Unique(by={by!r}): it takes a field's name, several different ones, or a function")
    return names


def _canonical(data: Any) -> bytes:
    return _write(_one_form(data)).encode()


def _one_form(data: Any) -> Any:
    """JSON data in which equal values are written alike."""
    if isinstance(data, str):
        return _composed(data)
    if isinstance(data, float):
        return data + 0.0  # which makes -0.0 the other zero
    if isinstance(data, list):
        return [_one_form(part) for part in data]
    if isinstance(data, dict):
        members = {_composed(key): _one_form(part) for key, part in data.items()}
        # Keys that differ only in their form stay apart, or two values would have one key.
        return members if len(members) == len(data) else {key: _one_form(part) for key, part in data.items()}
    return data


def _composed(text: str) -> str:
    """A text in the form NFC, as far as every version of Python agrees on it.

    Newer versions know more characters, so that they may compose what older ones leave. The form of those that
    Unicode 3.2 has, which every version keeps beside its own, does not change any more; the others stay as they are.
    """
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return text
    runs = [(settled, "".join(run)) for settled, run in groupby(text, _in_unicode_3_2)]
    return "".join(unicodedata.normalize("NFC", run) if settled else run for settled, run in runs)


def _in_unicode_3_2(character: str) -> bool:
    return unicodedata.ucd_3_2_0.category(character) != "Cn"


def _form_of_answer(function: Callable[[Any], Any], value: Any) -> bytes:
    answer = function(value)
    try:
        return _canonical(to_jsonable_python(_without_sets(_ANYTHING.dump_python(answer))))
    except Exception as error:
        raise ValueRefused(
            f"the function of Unique(by=...) answered a {type(answer).__name__} for this value, "
            f"which cannot be written as JSON: {error}"
        ) from error


def _without_sets(data: Any) -> Any:
    """Data in which each set is a list, in an order of its own that no process changes."""
    if isinstance(data, set | frozenset):
        return sorted((_without_sets(part) for part in data), key=lambda part: _canonical(to_jsonable_python(part)))
    if isinstance(data, list | tuple):
        return [_without_sets(part) for part in data]
    if isinstance(data, dict):
        return {key: _without_sets(part) for key, part in data.items()}
    return data


def _picked(data: Any, value: Any, names: Sequence[str]) -> dict[str, Any]:
    """The named parts of a value's JSON; a key that a mapping does not have is left out."""
    picked: dict[str, Any] = {}
    for name in names:
        try:
            picked[name] = data[_written_as(value, name)]
        except (LookupError, TypeError, ValueError):
            if not isinstance(value, Mapping) or name in value:
                raise ValueRefused(
                    f"Unique(by={name!r}): this value, a {type(value).__name__}, has no such field in its JSON"
                ) from None
    return picked


def _written_as(value: Any, name: str) -> str | int:
    """The key, or the index, that a field has in JSON."""
    sort: Any = type(value)
    if isinstance(value, tuple):
        return tuple(getattr(sort, "_fields", ())).index(name)
    fields = getattr(sort, "model_fields", None) or getattr(sort, "__pydantic_fields__", {})
    return getattr(fields.get(name), "serialization_alias", None) or name


def _declared(schema: dict[str, Any], type: Any) -> dict[str, Any] | None:
    """The fields that a type declares, with their schemas; None: it does not say, or takes any."""
    # A type that holds itself is a reference to its own definition, which pydantic before 2.9 wrapped once more.
    names = filter(None, map(_referred, (schema, *schema.get("allOf", ()))))
    root = schema.get("$defs", {}).get(next(names, ""), schema)
    if root.get("type") == "array":
        return dict(zip(getattr(type, "_fields", ()), root.get("prefixItems", ()), strict=False))
    if root.get("type") == "object":
        return None if root.get("additionalProperties") else root.get("properties")
    return {} if root.get("type") else None


def _referred(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _holds_a_set(node: Any, definitions: dict[str, Any], seen: set[str]) -> bool:
    if isinstance(node, list):
        return any(_holds_a_set(part, definitions, seen) for part in node)
    if not isinstance(node, dict):
        return False
    if node.get("uniqueItems") is True:
        return True
    name = _referred(node)
    if name and name not in seen:
        seen.add(name)
        return _holds_a_set(definitions.get(name), definitions, seen)
    return any(_holds_a_set(part, definitions, seen) for key, part in node.items() if key != "$defs")


def _advice(name: str, declared: dict[str, Any]) -> str:
    if not declared:
        return "it has none: leave by out, or give it a function of the value"
    near = get_close_matches(name, declared, n=1)
    return f"did you mean {near[0]!r}?" if near else f"it has {', '.join(map(repr, declared))}"

"""How the values of a kind become the JSON that a store keeps, and values again; and which texts a store may be given.

A value is kept only if it comes back equal to what it was. That is asked when it is pushed, where the mistake is,
and answered the same whatever the store.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from fastqueue._losses import NOT_KEPT, difference, equal, json_path, unkeepable
from fastqueue.errors import KindError, Mismatch, OptionError, Permanent, ValueRefused

__all__ = ["Codec", "adapter_of", "check_name", "error_text", "schema_of", "storable"]

T = TypeVar("T")

_NAMED_FAULTS = 5
"""Faults of one value that a message names; the rest are counted."""

_NESTED_GROUPS = 3
"""Groups within groups whose errors are named."""


class Codec(Generic[T]):
    """The JSON of one kind's values: written at the push, read at the run.

    What `encode` answers, `decode` makes a value again that equals the first, also in another process; what cannot
    be kept so is refused. What was pushed by older code is read as leniently as pydantic does by default: unknown
    fields are ignored, missing ones take their defaults.

    Args:
        kind: The kind's name, for messages.
        type: The type of its values: anything that pydantic's `TypeAdapter` takes.
        max_bytes: The longest JSON that is kept, in bytes of UTF-8. Default 1,048,576.

    Raises:
        KindError: pydantic does not take the type, or masks a part of it, so that it cannot come back.

    Example:
        >>> codec = Codec[list[int]]("add", list[int])
        >>> codec.encode([1, 2])
        '[1,2]'
        >>> codec.decode("[1,2]")
        [1, 2]
    """

    __slots__ = ("_dump", "_load", "kind", "max_bytes", "type")

    def __init__(self, kind: str, type: Any, *, max_bytes: int = 1_048_576) -> None:
        self.kind = kind
        self.type = type
        self.max_bytes = max_bytes
        adapter: TypeAdapter[T] = adapter_of(kind, type)
        if masked := _masked(schema_of(adapter), "the value"):
            raise KindError(
                f"kind {kind!r}: {masked} is a secret that pydantic writes as stars, so it cannot come back; "
                "push what the secret is found by, or declare it str to keep it readable in the store"
            )
        self._dump = adapter.serializer.to_json
        self._load = adapter.validator.validate_json

    def encode(self, value: T) -> str:
        """The JSON to keep for a value.

        Args:
            value: The value, of the codec's type.

        Returns:
            Compact JSON, with fields under their aliases.

        Raises:
            ValueRefused: It would not come back as it is: it is not of the type, breaks a constraint of it, or
                holds what JSON or a database cannot (a NUL, a lone surrogate, NaN, infinity, keys that become one);
                or it is too long. The message names the place, such as `value.items[2].name`.

        Example:
            >>> Codec[dict[str, float]]("measure", dict[str, float]).encode({"load": float("nan")})
            Traceback (most recent call last):
            fastqueue.errors.ValueRefused: kind 'measure' cannot keep this value: value.load is nan, which JSON does \
not have; push None or a text in its place
        """
        try:
            # pydantic's warnings of a wrong type cost as much as all the rest, and the comparison sees more.
            data = self._dump(value, by_alias=True, round_trip=True, warnings=False)
        except Exception as error:
            raise self._refusal(unkeepable(value) or _written(error)) from error
        if len(data) > self.max_bytes:
            raise self._refusal(
                f"it is {len(data)} bytes of JSON and {self.max_bytes} are allowed; "
                "keep the data elsewhere and push what it is found by"
            )
        try:
            loaded = self._load(data)
        except Exception as error:
            raise self._refusal(unkeepable(value) or _read_back(error)) from error
        if not equal(value, loaded) and (lost := unkeepable(value) or difference(value, loaded)):
            raise self._refusal(lost)
        payload = data.decode()
        # Only a payload with one of these may hold a NUL, or a constant that is Python's and not JSON's.
        if ("\\u0000" in payload or "NaN" in payload or "Infinity" in payload) and (
            lost := unkeepable(json.loads(payload))
        ):
            raise self._refusal(lost)
        return payload

    def decode(self, payload: str) -> T:
        """The value that was kept as this JSON.

        Args:
            payload: What `encode` answered, in this version of the code or another.

        Raises:
            Mismatch: It does not fit the type; the message names each field that does not, and none of their values.

        Example:
            >>> Codec[int]("count", int).decode('"three"')
            Traceback (most recent call last):
            fastqueue.errors.Mismatch: the stored value does not fit kind 'count': value: Input should be a valid \
integer, unable to parse string as an integer
        """
        try:
            value: T = self._load(payload)
        except ValidationError as error:
            raise Mismatch(f"the stored value does not fit kind {self.kind!r}: {_faults(error)}") from error
        return value

    def _refusal(self, reason: str) -> ValueRefused:
        return ValueRefused(f"kind {self.kind!r} cannot keep this value: {reason}")


def adapter_of(kind: str, type: Any) -> TypeAdapter[Any]:
    """The pydantic adapter for a kind's values, built to its end, so that nothing is found out later.

    Args:
        kind: The kind's name, for messages.
        type: The type of its values.

    Raises:
        KindError: pydantic does not take the type.

    Example:
        >>> adapter_of("add", list[int]).validate_json("[1,2]")
        [1, 2]
    """
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(type)
        # A type with a name that is not known yet is refused only when this is asked for.
        _ = adapter.serializer.to_json
    except Exception as error:
        # A type's own hooks run here too, so that anything may be raised.
        message = getattr(error, "message", None) or str(error)
        raise KindError(f"kind {kind!r}: pydantic cannot take the type of its values: {message}") from error
    return adapter


def schema_of(
    adapter: TypeAdapter[Any], *, mode: JsonSchemaMode = "serialization", by_alias: bool = True
) -> dict[str, Any]:
    """The JSON Schema of a kind's values; what JSON Schema cannot tell of them is left open.

    Args:
        adapter: What `adapter_of` answered.
        mode: The values as they are written (the default), or as they are read (`"validation"`).
        by_alias: True (the default) names fields by their aliases, False by their Python names.

    Example:
        >>> schema_of(adapter_of("add", list[int]))
        {'items': {'type': 'integer'}, 'type': 'array'}
    """
    try:
        return adapter.json_schema(mode=mode, by_alias=by_alias, schema_generator=_OpenSchema)
    except Exception:
        # A type may be written and read although its own hook for the schema fails.
        return {}


def storable(text: str, *, limit: int = 8192) -> str:
    """A text as every store can keep it: NUL and lone surrogates become U+FFFD, and what is too long is cut.

    Args:
        text: Any text.
        limit: The most characters kept; the last of them is an ellipsis where more were. Default 8192.

    Example:
        >>> storable("a\\0b")
        'a\ufffdb'
        >>> storable("too long", limit=5)
        'too …'
    """
    kept = text if len(text) <= limit else f"{text[: limit - 1]}…"
    return NOT_KEPT.sub("\ufffd", kept)


def error_text(error: BaseException) -> str:
    """The text of an error as it is kept with a job: never empty, and fit for every store.

    It is the error's message, or the name of its type if it has none. A group names the errors in it. Of a
    `Permanent`, it is the text of what it was given.

    Args:
        error: Any error, also one whose own message cannot be made.

    Example:
        >>> error_text(TimeoutError())
        'TimeoutError'
        >>> error_text(ExceptionGroup("two mails failed", [ValueError("no address"), TimeoutError()]))
        'two mails failed (2 sub-exceptions): ValueError: no address; TimeoutError'
    """
    return storable(_text(error, _NESTED_GROUPS))


def check_name(what: str, name: str, *, limit: int = 200) -> str:
    """A name of a kind or queue, once it is seen to be one that every store keeps and every log shows.

    Args:
        what: What is named, for the message, such as "kind".
        name: The name. It may hold any letters and signs, quotes and inner spaces too.
        limit: The most characters. Default 200.

    Returns:
        The name, unchanged.

    Raises:
        OptionError: It is no text, empty, too long, has a space at an end, or holds a character that cannot be seen
            or kept.

    Example:
        >>> check_name("kind", "verify-mail")
        'verify-mail'
        >>> check_name("queue", " mail")
        Traceback (most recent call last):
        fastqueue.errors.OptionError: the queue name ' mail' begins or ends with a space; take it off
    """
    wrong = _wrong_in_name(name, limit)
    if wrong:
        raise OptionError(f"the {what} name {wrong}")
    return name


class _OpenSchema(GenerateJsonSchema):
    """A schema made for looking: what cannot be described is open, and nobody is warned of it."""

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> dict[str, Any]:
        return {}

    def emit_warning(self, kind: str, detail: str) -> None:
        """Say nothing: the schema is thrown away."""


def _masked(node: Any, place: str) -> str | None:
    """The first part of a JSON Schema that pydantic writes as stars."""
    if isinstance(node, list):
        node = dict(enumerate(node))
    if not isinstance(node, dict):
        return None
    if node.get("writeOnly") is True and node.get("format") == "password":
        return place
    inner = [(place, part) for key, part in node.items() if key != "properties"]
    inner += [(f"its field {name!r}", part) for name, part in node.get("properties", {}).items()]
    return next((found for place, part in inner if (found := _masked(part, place))), None)


def _written(error: Exception) -> str:
    """What pydantic says about a value that it could not write."""
    return f"pydantic cannot write it: {str(error).removeprefix('Error serializing to JSON: ')}"


def _read_back(error: Exception) -> str:
    faults = _faults(error) if isinstance(error, ValidationError) else _text(error, _NESTED_GROUPS)
    return f"its own type would not take it back: {faults}"


def _faults(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    named = [f"{json_path(detail['loc'])}: {detail['msg']}" for detail in details[:_NAMED_FAULTS]]
    rest = len(details) - len(named)
    return "; ".join(named) + (f"; and {rest} more" if rest else "")


def _text(error: BaseException, levels: int) -> str:
    if isinstance(error, Permanent) and isinstance(error.error, BaseException):
        return _text(error.error, levels)
    try:
        text = str(error)
    except Exception as failure:
        text = f"{type(error).__name__} (its message could not be made: {type(failure).__name__})"
    if not text.strip():
        text = type(error).__name__
    if isinstance(error, BaseExceptionGroup) and levels:
        text = f"{text}: {'; '.join(_named(inner, levels - 1) for inner in error.exceptions)}"
    return text


def _named(error: BaseException, levels: int) -> str:
    name, text = type(error).__name__, _text(error, levels)
    return text if text.startswith(name) else f"{name}: {text}"


def _wrong_in_name(name: Any, limit: int) -> str | None:
    """What is wrong with a name, and what to do about it; None: nothing."""
    if not isinstance(name, str):
        return f"is {name!r}; it takes a str"
    if not name.strip():
        return f"is {name!r}; it needs at least one character that can be seen"
    if len(name) > limit:
        return f"{name[:20]!r}… has {len(name)} characters; shorten it to {limit}"
    if name != name.strip():
        return f"{name!r} begins or ends with a space; take it off"
    hidden = next(_hidden(name), None)
    return f"{name!r} holds {hidden!r}, which cannot be seen or kept; take it out" if hidden else None


def _hidden(name: str) -> Iterator[str]:
    return (character for character in name if unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"})

"""Keys: the same value has one, another value has another, in every process and every release."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections import OrderedDict
from dataclasses import FrozenInstanceError, dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, NamedTuple, NotRequired

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, PlainSerializer, RootModel, computed_field
from typing_extensions import TypedDict

from fastqueue.codec import Codec
from fastqueue.errors import KindError, OptionError, ValueRefused
from fastqueue.unique import Unique, canonical, check_by, key_of

WHOLE = Unique()


class Mail(BaseModel):
    user: int
    email: str
    sent: datetime | None = None


class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    user_id: int = Field(alias="userId")
    note: str = Field(default="", validation_alias=AliasChoices("note", "text"), serialization_alias="text")


class Camel(BaseModel):
    model_config = ConfigDict(populate_by_name=True, alias_generator=lambda name: f"x-{name}")
    user_id: int


@dataclass
class Point:
    x: float
    y: float


@pydantic.dataclasses.dataclass
class Located:
    place: Annotated[str, Field(serialization_alias="at", validation_alias="at")]


class Options(TypedDict):
    width: int
    height: NotRequired[int]


class Pair(NamedTuple):
    first: int
    second: str


class Tagged(BaseModel):
    user: int
    tags: set[str] = set()


class Node(BaseModel):
    name: str
    tags: frozenset[str] = frozenset()
    inner: list[Node] = []


def aliased(user_id: int, note: str) -> Aliased:
    return Aliased.model_validate({"user_id": user_id, "note": note})


def located(place: str) -> Located:
    return pydantic.TypeAdapter(Located).validate_python({"at": place})


def lowered(mail: Mail) -> str:
    return mail.email.lower()


def last_digit(mail: Mail) -> set[int]:
    return {mail.user % 10}


def tags_of(value: Tagged) -> list[Any]:
    return [value.tags, date.min]


def key(declared: Any, value: Any, unique: Unique = WHOLE) -> str:
    """The key of a value, by the way a push takes."""
    return key_of(Codec[Any]("kind", declared).encode(value), unique, value)


@pytest.mark.parametrize(
    ("payload", "form"),
    [
        ('{"b": 1, "a": {"d": [{"f": 1, "e": 2}], "c": null}}', b'{"a":{"c":null,"d":[{"e":2,"f":1}]},"b":1}'),
        ('"e\u0301"', b'"\\u00e9"'),
        ('"\u00e9"', b'"\\u00e9"'),
        ('"\\u0065\\u0301"', b'"\\u00e9"'),
        ('{"e\u0301": 1, "a": 2}', b'{"a":2,"\\u00e9":1}'),
        ('{"e\u0301": 1, "\u00e9": 2}', b'{"e\\u0301":1,"\\u00e9":2}'),
        ('"\U0001f600 e\u0301"', b'"\\ud83d\\ude00 \\u00e9"'),
        ("[1, 1.0, -0.0, 0.0, -0, 1e2, 1.50, 1E-7, 1e23]", b"[1,1.0,0.0,0.0,0,100.0,1.5,1e-07,1e+23]"),
        ("[3889108265204450030, 9223372036854775808]", b"[3889108265204450030,9223372036854775808]"),
        ('[true, false, null, ""]', b'[true,false,null,""]'),
    ],
)
def test_equal_values_have_one_canonical_form(payload: str, form: bytes) -> None:
    assert canonical(payload) == form
    assert canonical(canonical(payload).decode()) == form


@pytest.mark.parametrize("payload", ["{", "NaN", "[Infinity]", ""])
def test_what_is_no_json_has_no_canonical_form(payload: str) -> None:
    with pytest.raises(ValueError, match=r"JSON|line 1"):
        canonical(payload)


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda parts: st.lists(parts) | st.dictionaries(TEXT, parts),
    max_leaves=12,
)


def other_way_round(data: Any) -> Any:
    """The same JSON data, with the members of its objects in the other order."""
    if isinstance(data, list):
        return [other_way_round(part) for part in data]
    if isinstance(data, dict):
        return {name: other_way_round(part) for name, part in reversed(data.items())}
    return data


@settings(deadline=None)
@given(JSON)
def test_the_order_of_keys_makes_no_difference_at_any_depth(data: Any) -> None:
    codec = Codec[Any]("kind", Any)
    assert canonical(codec.encode(data)) == canonical(codec.encode(other_way_round(data)))


@settings(deadline=None)
@given(JSON)
def test_a_canonical_form_is_json_of_the_same_value_and_its_own_form(data: Any) -> None:
    form = canonical(Codec[Any]("kind", Any).encode(data))
    assert form.isascii()
    assert canonical(form.decode()) == form


@settings(deadline=None)
@given(st.lists(st.integers() | st.text('ab\u00e9\U0001f600" ,:{}', max_size=4), min_size=2, max_size=2, unique=True))
def test_two_values_have_two_forms(pair: list[Any]) -> None:
    codec = Codec[Any]("kind", Any)
    first, second = (canonical(codec.encode(part)) for part in pair)
    assert first != second


def test_a_character_that_newer_pythons_know_is_left_as_it_is() -> None:
    # U+10EFD is a mark since Unicode 15: Python 3.12 would move it before the accent, Python 3.11 would not.
    assert canonical('"e\u0301 \u0301\U00010efd"') == b'"\\u00e9 \\u0301\\ud803\\udefd"'


# Never change these: jobs that wait while a release is rolled out are compared by them.
KNOWN = [
    (None, None, WHOLE, "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"),
    (
        Mail,
        Mail(user=7, email="\u00e9@example.com"),
        WHOLE,
        "014b7e0b425c71d111e2430c0c9e026a2916d873d12a1146c154408b84acb44e",
    ),
    (
        Mail,
        Mail(user=7, email="e\u0301@example.com"),
        WHOLE,
        "014b7e0b425c71d111e2430c0c9e026a2916d873d12a1146c154408b84acb44e",
    ),
    (
        Mail,
        Mail(user=7, email="a", sent=datetime(2026, 12, 1, 9, 30, 0, 120000, tzinfo=UTC)),
        WHOLE,
        "656136679b06198f2b055fc2a428644f65d5d325b2e172f16175e9cbc58a9b4f",
    ),
    (
        Mail,
        Mail(user=7, email="a"),
        Unique(by="user"),
        "f50ddcc7c1237a601ee587b1104a24e30ac323fead8c5014046b44b5de3db0e1",
    ),
    (
        Mail,
        Mail(user=7, email="a"),
        Unique(by=["user", "email"]),
        "31594a34bd24e2f8f4d5b1fb166ab3abf7ac4c2b5b8437fc91a683cd34bbbb16",
    ),
    (
        Mail,
        Mail(user=7, email="a"),
        Unique(by=lambda mail: (mail.user, {"b", "a"})),
        "b5974b9f2f0862bc6b58d820136ad2eee8b11c4772c98640888b5d924575659d",
    ),
    (Point, Point(1, -0.0), WHOLE, "add7bae93ceb39441a299e3fc5cbe3346c80fbc907af4b5dc5b8fea6fad2216d"),
    (
        dict[str, Any],
        {"b": [1, 2.5, None, True], "a": {"z": 10**30, "y": "\U0001f600"}},
        WHOLE,
        "0abc5bc25770570f73835ef5b6d77ef505d320f2c14a2266dd3d5a32d4828ff9",
    ),
]


@pytest.mark.parametrize(("declared", "value", "unique", "known"), KNOWN)
def test_a_key_is_the_same_in_every_release(declared: Any, value: Any, unique: Unique, known: str) -> None:
    assert key(declared, value, unique) == known


def test_a_key_is_the_same_in_every_process() -> None:
    program = (
        "from fastqueue.unique import Unique, key_of\n"
        "value = {'user': 7}\n"
        "print(key_of('{\"user\":7}', Unique(by=lambda v: {str(n) for n in range(50)}), value))"
    )
    keys = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(keys) == 1


def test_an_integer_and_a_float_of_one_type_are_one_value() -> None:
    assert key(Point, Point(1, 2)) == key(Point, Point(1.0, 2.0))
    assert key(float, 0.0) == key(float, -0.0)
    assert key(Any, 1) != key(Any, 1.0)


def test_the_whole_value_counts_unless_told() -> None:
    assert key(Mail, Mail(user=7, email="a")) != key(Mail, Mail(user=7, email="b"))
    assert key(dict[str, int], {"a": 1, "b": 2}) == key(dict[str, int], OrderedDict(b=2, a=1))


@pytest.mark.parametrize(
    ("declared", "value", "same", "other", "by"),
    [
        (Mail, Mail(user=7, email="a"), Mail(user=7, email="b"), Mail(user=8, email="a"), "user"),
        (Mail, Mail(user=7, email="a"), Mail(user=7, email="a"), Mail(user=7, email="b"), ("email", "user")),
        (Aliased, Aliased(userId=7), aliased(7, "b"), Aliased(userId=8), "user_id"),
        (Aliased, Aliased(userId=7), Aliased(userId=8), aliased(7, "b"), "note"),
        (
            Camel,
            Camel.model_validate({"user_id": 7}),
            Camel.model_validate({"x-user_id": 7}),
            Camel.model_validate({"user_id": 8}),
            "user_id",
        ),
        (Point, Point(1, 2), Point(1.0, 3), Point(2, 2), ["x"]),
        (Located, located("a"), located("a"), located("b"), "place"),
        (Options, {"width": 1, "height": 2}, {"width": 2, "height": 2}, {"width": 1}, "height"),
        (Options, {"width": 1}, {"width": 2}, {"width": 1, "height": 0}, "height"),
        (dict[str, int], {"a": 1, "b": 2}, {"a": 1}, {"b": 2}, "a"),
        (Pair, Pair(1, "a"), Pair(1, "b"), Pair(2, "a"), "first"),
        (Mail, Mail(user=7, email="A"), Mail(user=8, email="a"), Mail(user=7, email="b"), lowered),
        (Mail, Mail(user=17, email="a"), Mail(user=7, email="a"), Mail(user=8, email="a"), last_digit),
        (Tagged, Tagged(user=1, tags={"a"}), Tagged(user=2, tags={"a"}), Tagged(user=1), tags_of),
    ],
)
def test_the_part_that_counts_is_what_by_says(declared: Any, value: Any, same: Any, other: Any, by: Any) -> None:
    unique = Unique(by=by)
    if not callable(by):
        check_by("kind", declared, unique)
    assert key(declared, value, unique) == key(declared, same, unique)
    assert key(declared, value, unique) != key(declared, other, unique)


def test_one_name_is_the_same_as_a_list_of_it_and_their_order_makes_no_difference() -> None:
    mail = Mail(user=7, email="a")
    assert Unique(by="user") == Unique(by=["user"])
    assert key(Mail, mail, Unique(by=["user", "email"])) == key(Mail, mail, Unique(by=("email", "user")))


def test_which_field_holds_a_part_makes_a_difference() -> None:
    mail = Mail(user=7, email="7")
    assert key(Mail, mail, Unique(by="user")) != key(Mail, mail, Unique(by="email"))


@pytest.mark.parametrize(
    ("declared", "value", "by"),
    [
        (Mail | None, None, "user"),
        (Pair, Pair(1, "a"), "third"),
        (tuple[int, int], (1, 2), "first"),
        (str, "user", "user"),
        (Annotated[dict[str, int], PlainSerializer(lambda value: {"b": value["a"]})], {"a": 1}, "a"),
    ],
)
def test_a_value_without_the_part_is_refused(declared: Any, value: Any, by: str) -> None:
    with pytest.raises(ValueRefused, match=rf"Unique\(by='{by}'\): this value, a .*, has no such field in its JSON"):
        key_of(pydantic.TypeAdapter[Any](declared).dump_json(value).decode(), Unique(by=by), value)


@pytest.mark.parametrize("answer", [object(), math.nan, {"a": [math.inf]}, b"\xff", {frozenset({1}): 2}])
def test_an_answer_that_json_cannot_hold_is_refused(answer: Any) -> None:
    with pytest.raises(ValueRefused, match=f"answered a {type(answer).__name__} for this value, which cannot be"):
        key(int, 1, Unique(by=lambda _: answer))


def test_an_error_of_the_function_is_its_own() -> None:
    with pytest.raises(ZeroDivisionError):
        key(int, 0, Unique(by=lambda number: 1 / number))


# The option


def test_the_option_is_a_value() -> None:
    assert Unique() == Unique(latest=False, one_at_a_time=False, by=None)
    assert hash(Unique(by=["user", "email"])) == hash(Unique(by=("user", "email")))
    with pytest.raises(FrozenInstanceError):
        WHOLE.latest = True  # type: ignore[misc]


async def later(value: Any) -> Any:
    return value


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"latest": 1}, r"Unique\(latest=1\): it takes True or False"),
        ({"one_at_a_time": "yes"}, r"Unique\(one_at_a_time='yes'\): it takes True or False"),
        ({"by": ""}, r"Unique\(by=''\): it takes a field's name, several different ones, or a function"),
        ({"by": []}, r"Unique\(by=\[\]\): it takes a field's name"),
        ({"by": ["a", "a"]}, "several different ones"),
        ({"by": ["a", 3]}, "it takes a field's name"),
        ({"by": 3}, "it takes a field's name"),
        ({"by": later}, "it takes a plain function"),
    ],
)
def test_an_option_that_cannot_be_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        Unique(**options)


# Registration


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    user: int


class Empty(BaseModel):
    pass


class Total(BaseModel):
    user: int

    @computed_field
    def tags(self) -> set[int]:
        return {self.user}


@pytest.mark.parametrize(
    ("declared", "by"),
    [
        (Mail, "user"),
        (Mail, ["user", "email", "sent"]),
        (Node, "name"),
        (Aliased, ["user_id", "note"]),
        (Point, "x"),
        (Located, "place"),
        (Options, "height"),
        (Pair, "second"),
        (Open, "anything"),
        (dict[str, Any], "anything"),
        (Any, "anything"),
        (Mail | Options, "anything"),
        (Tagged, "user"),
        (Total, None),
        (set[int], len),
        (Tagged, tags_of),
        (Mail, None),
        (int, None),
        (list[Node | None], len),
        (Annotated[set[int], PlainSerializer(sorted, return_type=list[int])], None),
    ],
)
def test_a_part_that_a_value_can_have_is_taken(declared: Any, by: Any) -> None:
    check_by("verify-mail", declared, Unique(by=by))


@pytest.mark.parametrize(
    ("declared", "by", "advice"),
    [
        (Mail, "usr", "did you mean 'user'?"),
        (Mail, ["user", "mail"], "did you mean 'email'?"),
        (Mail, "xyz", "it has 'user', 'email', 'sent'"),
        (Node, "nam", "did you mean 'name'?"),
        (Aliased, "userId", "did you mean 'user_id'?"),
        (Point, "z", "it has 'x', 'y'"),
        (Options, "heigth", "did you mean 'height'?"),
        (Pair, "frist", "did you mean 'first'?"),
        (Total, "tags", "it has 'user'"),
        (Empty, "user", "it has none: leave by out, or give it a function of the value"),
        (int, "user", "it has none: leave by out, or give it a function of the value"),
        (list[Mail], "user", "it has none: leave by out, or give it a function of the value"),
        (RootModel[list[int]], "root", "it has none: leave by out, or give it a function of the value"),
    ],
)
def test_a_field_that_a_value_does_not_have_is_refused_with_the_nearest(declared: Any, by: Any, advice: str) -> None:
    with pytest.raises(KindError) as caught:
        check_by("verify-mail", declared, Unique(by=by))
    name = by if isinstance(by, str) else by[-1]
    said = f"kind 'verify-mail' is unique by {name!r}, a field that its value does not have; {advice}"
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("declared", "by", "part"),
    [
        (Tagged, None, "tags"),
        (Tagged, ["user", "tags"], "tags"),
        (Node, None, "tags"),
        (Node, "inner", "inner"),
        (set[int], None, "value"),
        (dict[str, set[int]], "any", "any"),
        (list[Tagged], None, "value"),
    ],
)
def test_a_set_does_not_count_since_it_has_no_order(declared: Any, by: Any, part: str) -> None:
    with pytest.raises(KindError, match=f"kind 'verify-mail' is unique by its {part}, which holds a set"):
        check_by("verify-mail", declared, Unique(by=by))


def test_a_type_that_pydantic_does_not_take_is_refused_here_too() -> None:
    with pytest.raises(KindError, match="pydantic cannot take the type"):
        check_by("verify-mail", object(), Unique(by="user"))


def test_money_is_compared_by_its_text() -> None:
    assert key(Decimal, Decimal("1.0")) != key(Decimal, Decimal("1.00"))

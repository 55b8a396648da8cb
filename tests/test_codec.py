"""Values come back as they went in, or are refused where they are pushed; texts are made fit to keep."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from pydantic import (
    AfterValidator,
    AliasChoices,
    AnyUrl,
    BaseModel,
    ConfigDict,
    Field,
    Json,
    PlainSerializer,
    PrivateAttr,
    Secret,
    SecretBytes,
    SecretStr,
    computed_field,
)
from typing_extensions import TypedDict

from fastqueue.codec import Codec, check_name, error_text, storable
from fastqueue.errors import KindError, Mismatch, OptionError, Permanent, ValueRefused

T = TypeVar("T")


class Mail(BaseModel):
    user: int
    email: str


class PaidMail(Mail):
    price: int = 0


class Item(BaseModel):
    name: str


class Order(BaseModel):
    items: list[Item]


@dataclass
class Point:
    x: float
    y: float = 0.0


class Options(TypedDict):
    width: int


class Pair(NamedTuple):
    first: int
    second: datetime | None = None


class Box(BaseModel, Generic[T]):
    content: T


class Colour(StrEnum):
    RED = "red"


class Size(Enum):
    LARGE = 3


class Everything(BaseModel):
    at: datetime
    day: date
    took: timedelta
    price: Decimal
    id: UUID
    colour: Colour
    size: Size
    link: AnyUrl
    raw: bytes
    tags: frozenset[str]
    pair: Pair
    points: dict[int, Point]


EVERYTHING = Everything(
    at=datetime(2026, 12, 1, 9, 30, 0, 123456),
    day=date(2026, 2, 28),
    took=timedelta(days=-1, microseconds=7),
    price=Decimal("19.90"),
    id=UUID("12345678-1234-5678-1234-567812345678"),
    colour=Colour.RED,
    size=Size.LARGE,
    link=AnyUrl("https://example.com/a?b=c"),
    raw="é".encode(),
    tags=frozenset({"a", "b"}),
    pair=Pair(1, datetime(2026, 12, 1, tzinfo=UTC)),
    points={-3: Point(0.1, -2.5)},
)


def codec(declared: Any, **options: Any) -> Codec[Any]:
    return Codec[Any]("verify-mail", declared, **options)


def refusal(declared: Any, value: Any, **options: Any) -> str:
    """What the refusal of a value says, without the name of the kind."""
    with pytest.raises(ValueRefused) as caught:
        codec(declared, **options).encode(value)
    start = "kind 'verify-mail' cannot keep this value: "
    assert str(caught.value).startswith(start)
    return str(caught.value).removeprefix(start)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (Mail, Mail(user=1, email="å@example.com")),
        (Everything, EVERYTHING),
        (Point, Point(1.5)),
        (Options, {"width": 3}),
        (Pair, Pair(1)),
        (Box[int], Box[int](content=3)),
        (Mail | None, None),
        (None, None),
        (list[Mail], [Mail(user=1, email="a"), Mail(user=2, email="b")]),
        (dict[int, str], {1: "a", 2: "b"}),
        (Annotated[int, Field(gt=0)], 3),
        (Literal["a", "b"], "b"),
        (dict[str, Any], {"deep": [{"a": None, "b": [True, 1.5, "text"]}]}),
        (float, 5e-324),
        (float, 1e23),
        (str, "NaN, Infinity and \\u0000 are words here 😀 \u2028"),
        (Box[Decimal], Box[Decimal](content=Decimal("1E400"))),
    ],
)
def test_a_value_comes_back_as_it_went_in(declared: Any, value: Any) -> None:
    subject = codec(declared)
    loaded = subject.decode(subject.encode(value))
    assert loaded == value
    assert type(loaded) is type(value)


def test_a_zero_keeps_its_sign() -> None:
    subject = codec(float)
    assert math.copysign(1, subject.decode(subject.encode(-0.0))) == -1


@pytest.mark.parametrize("declared", [int, Any])
@pytest.mark.parametrize(
    "number",
    [3889108265204450030, 2**53 + 1, 2**63, -(2**63) - 1, 10**30, -(10**4298), 10**4300 - 1],
    ids=lambda number: hex(number)[:12],
)
def test_an_integer_is_kept_to_its_last_digit(declared: Any, number: int) -> None:
    subject = codec(declared)
    payload = subject.encode(number)
    assert payload == str(number)
    assert subject.decode(payload) == number


@pytest.mark.parametrize("declared", [int, Any])
@pytest.mark.parametrize("number", [10**4300, -(10**4300), 10**9000], ids=lambda number: hex(number)[:12])
def test_an_integer_too_long_to_be_read_is_refused_and_not_a_crash(declared: Any, number: int) -> None:
    assert refusal(dict[str, declared], {"n": number}).startswith("value.n is an integer of more than 4300 digits")


def test_the_payload_is_compact_json_under_the_aliases() -> None:
    class Aliased(BaseModel):
        model_config = ConfigDict(populate_by_name=True)
        user_id: int = Field(alias="userId")
        email: str

    subject = codec(Aliased)
    value = Aliased.model_validate({"user_id": 1, "email": "å"})
    payload = subject.encode(value)
    assert payload == '{"userId":1,"email":"å"}'
    assert subject.decode(payload) == value


def test_a_field_that_is_json_itself_and_one_that_is_computed_come_back() -> None:
    class Wrapped(BaseModel):
        model_config = ConfigDict(extra="forbid")
        inner: Json[list[int]]

        @computed_field
        def total(self) -> int:
            return sum(self.inner)

    subject = codec(Wrapped)
    value = Wrapped.model_validate({"inner": "[1, 2]"})
    assert subject.decode(subject.encode(value)) == value


# The places of what no database, or no JSON, can hold.


@pytest.mark.parametrize(
    ("declared", "value", "place"),
    [
        (Mail, Mail(user=1, email="a\0b"), "value.email"),
        (dict[str, Any], {"name": "a\0b"}, "value.name"),
        (dict[str, Any], {"a": {"b": [{"name": "\0"}]}}, "value.a.b[0].name"),
        (Order, Order(items=[Item(name="a"), Item(name="b"), Item(name="\0")]), "value.items[2].name"),
        (str, "\0", "value"),
        (dict[str, int], {"k\0": 1}, "the key 'k\\x00' of value"),
        (list[Any], [[[{"k\0": 1}]]], "the key 'k\\x00' of value[0][0][0]"),
        (dict[str, Any], {"first name": "\0"}, "value['first name']"),
        (bytes, b"\0", "value"),
    ],
)
def test_a_nul_is_refused_naming_its_place(declared: Any, value: Any, place: str) -> None:
    assert refusal(declared, value) == f"{place} holds a NUL character; take it out before the push"


@pytest.mark.parametrize(
    ("declared", "value", "place"),
    [
        (str, "\ud800", "value"),
        (Order, Order.model_construct(items=[Item.model_construct(name="a\ud800")]), "value.items[0].name"),
        (Any, {"a": ["x", "\ud800"]}, "value.a[1]"),
        (dict[str, int], {"\ud800": 1}, "the key '\\ud800' of value"),
        (dict[str, Any], {"\ud800": 1}, "the key '\\ud800' of value"),
    ],
)
def test_a_lone_surrogate_is_refused_naming_its_place(declared: Any, value: Any, place: str) -> None:
    assert refusal(declared, value) == f"{place} holds the lone surrogate \\ud800; take it out before the push"


@pytest.mark.parametrize(
    ("number", "name"), [(math.nan, "nan"), (math.inf, "inf"), (-math.inf, "-inf"), (1e400, "inf")]
)
@pytest.mark.parametrize("declared", [Any, list[float], list[float | None]])
def test_a_number_that_json_lacks_is_refused_naming_it_and_its_place(declared: Any, number: float, name: str) -> None:
    reason = f"value[1] is {name}, which JSON does not have; push None or a text in its place"
    assert refusal(declared, [1.0, number]) == reason


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_model_that_writes_constants_of_python_is_refused_too(number: float) -> None:
    class Metric(BaseModel):
        model_config = ConfigDict(ser_json_inf_nan="constants")
        load: float

    assert refusal(Metric, Metric(load=number)).startswith(f"value.load is {number}, which JSON does not have")


@pytest.mark.parametrize("declared", [Any, dict[Any, str], dict[int | str, str]])
def test_keys_that_json_would_make_one_are_refused_rather_than_merged(declared: Any) -> None:
    reason = "value has the keys 1 and '1', which JSON makes one; rename one of them"
    assert refusal(declared, {1: "a", "1": "b"}) == reason


def test_a_payload_is_kept_up_to_its_limit_in_bytes() -> None:
    assert codec(str, max_bytes=6).encode("åå") == '"åå"'
    reason = "it is 7 bytes of JSON and 6 are allowed; keep the data elsewhere and push what it is found by"
    assert refusal(str, "ååa", max_bytes=6) == reason


def test_the_limit_is_a_mebibyte_unless_told() -> None:
    assert len(codec(str).encode("a" * (2**20 - 2))) == 2**20
    assert refusal(str, "a" * (2**20 - 1)).startswith("it is 1048577 bytes of JSON and 1048576 are allowed")


# What JSON could hold, but not give back.


class Hidden(BaseModel):
    note: str | None = Field(default=None, exclude=True)


class Unread(BaseModel):
    note: str = Field(default="", validation_alias=AliasChoices("one", "two"), serialization_alias="three")


class Tagged(BaseModel):
    _token: int = PrivateAttr(default=0)


def tagged(token: int) -> Tagged:
    value = Tagged()
    value._token = token
    return value


@pytest.mark.parametrize(
    ("declared", "value", "reason"),
    [
        (Mail, PaidMail(user=1, email="a"), "value went in as a PaidMail and came back as a Mail"),
        (list[Mail], [PaidMail(user=1, email="a")], "value[0] went in as a PaidMail and came back as a Mail"),
        (Options, {"width": 1, "height": 2}, "value.height would not come back; the declared type has no place for it"),
        (Hidden, Hidden(note="x"), "value.note went in as 'x' and came back as None"),
        (Unread, Unread.model_validate({"one": "x"}), "value.note went in as 'x' and came back as ''"),
        (Mail, {"user": 1, "email": "a"}, "value went in as a dict and came back as a Mail"),
        (Mail, Mail.model_construct(user="5", email="a"), "value.user went in as a str and came back as an int"),
        (Point, Point(x="1.5"), "value.x went in as a str and came back as a float"),  # type: ignore[arg-type]
        (dict[str, Any], {"at": date(2026, 1, 2)}, "value.at went in as a date and came back as a str"),
        (dict[str, Any], {"size": (1, 2)}, "value.size went in as a tuple and came back as a list"),
        (dict[Any, Any], {1: "a"}, "value[1] would not come back; the declared type has no place for it"),
        (Any, Size.LARGE, "value went in as a Size and came back as an int"),
        (float, 3889108265204450030, "value went in as an int and came back as a float"),
        (Annotated[int, AfterValidator(lambda n: n + 1)], 1, "value went in as 1 and came back as 2"),
        (Annotated[Any, AfterValidator(lambda _: None)], "x", "value went in as 'x' and came back as None"),
        (Annotated[list[int], AfterValidator(lambda n: [*n, 3])], [1], "value[1] was not there and came back as 3"),
        (Annotated[dict[str, int], AfterValidator(lambda n: n | {"b": 3})], {}, "value.b was not there and came back"),
        (Tagged, tagged(3), "value._token went in as 3 and came back as 0"),
        (
            dict[str, Annotated[str, AfterValidator(str.upper)]],
            {"a": "x" * 100},
            f"value.a went in as '{'x' * 58}… and came back as '{'X' * 58}…",
        ),
    ],
)
def test_what_would_come_back_as_another_is_refused_naming_both(declared: Any, value: Any, reason: str) -> None:
    assert refusal(declared, value).startswith(reason)


@pytest.mark.parametrize(
    ("declared", "value", "fault"),
    [
        (Annotated[int, Field(gt=0)], -1, "value: Input should be greater than 0"),
        (Mail, Mail.model_construct(user="me", email="a"), "value.user: Input should be a valid integer"),
        (Mail, Mail.model_construct(user=1), "value.email: Field required"),
        (Order, Order.model_construct(items=[Item.model_construct(name=3)]), "value.items[0].name: Input should be"),
        (Callable[[], int], dict, "pydantic cannot write it: "),
    ],
)
def test_a_value_that_breaks_its_own_type_is_refused_at_the_push(declared: Any, value: Any, fault: str) -> None:
    assert fault in refusal(declared, value)


def test_a_type_that_fails_while_it_is_read_back_refuses_the_value() -> None:
    def fail(value: int) -> int:
        raise LookupError("no table of numbers")

    reason = refusal(Annotated[int, AfterValidator(fail)], 1)
    assert reason == "its own type would not take it back: no table of numbers"


def test_a_value_that_holds_itself_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    assert "Circular reference" in refusal(Any, circle)


def test_a_value_too_deep_to_be_written_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    assert "depth" in refusal(Any, deep)


@pytest.mark.parametrize("fold", [0, 1])
@pytest.mark.parametrize("month_day", [(10, 25), (3, 29)], ids=["repeated hour", "skipped hour"])
def test_a_moment_in_the_hour_that_a_clock_repeats_or_skips_is_kept(month_day: tuple[int, int], fold: int) -> None:
    at = datetime(2026, *month_day, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=fold)
    subject = codec(list[datetime])
    loaded = subject.decode(subject.encode([at]))
    assert loaded[0].astimezone(UTC) == at.astimezone(UTC)


def test_another_moment_is_not_taken_for_the_same() -> None:
    late = Annotated[datetime, AfterValidator(lambda at: at + timedelta(hours=1))]
    assert refusal(late, datetime(2026, 1, 1, tzinfo=UTC)).startswith(
        "value went in as datetime.datetime(2026, 1, 1, 0"
    )


def test_a_naive_datetime_stays_naive() -> None:
    subject = codec(datetime)
    assert subject.decode(subject.encode(datetime(2026, 1, 1))) == datetime(2026, 1, 1)


@dataclass(eq=False)
class Unequal:
    number: int
    lock: threading.Lock | None = None


class Locked(BaseModel):
    number: int
    _lock: Any = PrivateAttr(default_factory=threading.Lock)


@pytest.mark.parametrize("value", [Locked(number=3), [Locked(number=3)]])
def test_parts_that_have_no_equality_are_not_held_against_a_value(value: Any) -> None:
    subject = codec(list[Locked] if isinstance(value, list) else Locked)
    assert subject.encode(value)


def test_a_type_without_equality_is_compared_by_its_members() -> None:
    @dataclass(eq=False)
    class Count:
        number: Annotated[int, AfterValidator(abs)] = 0
        seen: list[int] = field(default_factory=list)

    assert codec(Count).encode(Count(3)) == '{"number":3,"seen":[]}'
    assert refusal(Count, Count(-3)) == "value.number went in as -3 and came back as 3"


class Array:
    def __eq__(self, other: object) -> bool:
        raise ValueError("which element?")


class Measured(BaseModel):
    array: Annotated[Any, PlainSerializer(lambda _: 1), AfterValidator(lambda _: Array())]
    number: Annotated[int, AfterValidator(abs)]


def test_an_equality_that_cannot_say_yes_or_no_is_not_asked() -> None:
    assert codec(Measured).encode(Measured(array=2, number=3)) == '{"array":1,"number":3}'
    value = Measured.model_construct(array=Array(), number=-3)
    assert refusal(Measured, value) == "value.number went in as -3 and came back as 3"


# Types


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (threading.Lock, "Unable to generate pydantic-core schema"),
        ("Nowhere", "Nowhere"),
        (list["Nowhere"], "Nowhere"),  # type: ignore[name-defined]  # noqa: F821
        (Annotated[str, Field(pattern="(")], "regex parse error"),
    ],
)
def test_a_type_that_pydantic_does_not_take_is_refused_in_its_words(declared: Any, said: str) -> None:
    with pytest.raises(KindError, match="kind 'verify-mail': pydantic cannot take the type of its values: ") as caught:
        codec(declared)
    assert said in str(caught.value)
    assert "errors.pydantic.dev" not in str(caught.value)


class Login(BaseModel):
    name: str
    password: SecretStr


@pytest.mark.parametrize(
    ("declared", "part"),
    [
        (Login, "its field 'password'"),
        (list[Login], "its field 'password'"),
        (SecretStr, "the value"),
        (Box[SecretBytes], "its field 'content'"),
        (Login | None, "its field 'password'"),
    ],
)
def test_a_type_that_hides_a_secret_is_refused_since_it_cannot_come_back(declared: Any, part: str) -> None:
    with pytest.raises(KindError, match=f"kind 'verify-mail': {part} is a secret that pydantic writes as stars"):
        codec(declared)


def test_a_secret_that_no_schema_tells_of_is_refused_at_the_push() -> None:
    assert "value.content: Input should be a valid integer" in refusal(
        Box[Secret[int]], Box[Secret[int]](content=Secret[int](3))
    )


def test_a_text_field_that_a_form_shows_as_a_password_is_kept() -> None:
    class Form(BaseModel):
        code: str = Field(json_schema_extra={"format": "password"})
        properties: dict[str, Any] = {"writeOnly": object}

    assert codec(Form).encode(Form(code="123", properties={})) == '{"code":"123","properties":{}}'


def test_a_type_whose_schema_cannot_be_told_is_taken() -> None:
    class Odd(str):
        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: Callable[[Any], Any]) -> Any:
            return handler(str)

        @classmethod
        def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
            raise LookupError("no schema")

    assert codec(Odd).encode(Odd("a")) == '"a"'


# Reading


def test_what_older_code_pushed_is_read_leniently() -> None:
    class Later(BaseModel):
        user: int
        email: str = "none"

    assert codec(Later).decode('{"user":"12","gone":true}') == Later(user=12)


@pytest.mark.parametrize(
    ("declared", "payload", "faults"),
    [
        (Mail, "{}", "value.user: Field required; value.email: Field required"),
        (Order, '{"items":[{"name":"a"},{"name":2}]}', "value.items[1].name: Input should be a valid string"),
        (Mail, "[]", "value: Input should be an object"),
        (Mail, '{"user"', "value: Invalid JSON: EOF while parsing an object at line 1 column 7"),
        (str, "\ud800", "value: Input should be a valid string, unable to parse raw data as a unicode string"),
        (
            list[int],
            '["a","b","c","d","e","f","g"]',
            "; ".join(
                f"value[{place}]: Input should be a valid integer, unable to parse string as an integer"
                for place in range(5)
            )
            + "; and 2 more",
        ),
    ],
)
def test_a_stored_value_that_no_longer_fits_names_its_faults(declared: Any, payload: str, faults: str) -> None:
    with pytest.raises(Mismatch) as caught:
        codec(declared).decode(payload)
    assert str(caught.value) == f"the stored value does not fit kind 'verify-mail': {faults}"


def test_a_mismatch_shows_nobody_the_value() -> None:
    with pytest.raises(Mismatch) as caught:
        codec(Mail).decode('{"user":"hunter2","email":"a"}')
    assert "hunter2" not in str(caught.value)


def test_an_error_of_the_code_that_reads_a_value_is_no_mismatch() -> None:
    def fail(value: int) -> int:
        raise LookupError("no table of numbers")

    with pytest.raises(LookupError, match="no table of numbers"):
        codec(Annotated[int, AfterValidator(fail)]).decode("1")


# Texts


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", ""),
        ("plain é 😀", "plain é 😀"),
        ("a\0b", "a\ufffdb"),
        ("\ud83d\ude00", "\ufffd\ufffd"),
        ("\udfff", "\ufffd"),
    ],
)
def test_a_text_is_made_fit_for_every_store(text: str, kept: str) -> None:
    assert storable(text) == kept


def test_a_text_is_cut_at_its_limit_with_an_ellipsis() -> None:
    assert storable("12345", limit=5) == "12345"
    assert storable("123456", limit=5) == "1234…"
    assert len(storable("x" * 100_000)) == 8192


def group(name: str, *errors: Exception) -> Exception:
    return ExceptionGroup(name, errors)


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no address"), "no address"),
        (TimeoutError(), "TimeoutError"),
        (ValueError("  \n"), "ValueError"),
        (ValueError("a\0b\ud800"), "a\ufffdb\ufffd"),
        (Silent(), "Silent (its message could not be made: RuntimeError)"),
        (Permanent("no such mailbox"), "no such mailbox"),
        (Permanent(TimeoutError()), "TimeoutError"),
        (Permanent(Silent()), "Silent (its message could not be made: RuntimeError)"),
        (
            group("two", ValueError("a"), group("inner", KeyError("k"), OSError())),
            "two (2 sub-exceptions): ValueError: a; ExceptionGroup: inner (2 sub-exceptions): KeyError: 'k'; OSError",
        ),
    ],
)
def test_the_text_of_an_error_says_something_and_can_be_kept(error: BaseException, text: str) -> None:
    assert error_text(error) == text


def test_the_text_of_an_error_is_cut_however_deep_its_groups_go() -> None:
    error: Exception = ValueError("x" * 10_000)
    assert len(error_text(error)) == 8192
    for _ in range(2000):
        error = group("g", error)
    assert error_text(error).count("ExceptionGroup") == 3


# Names


@pytest.mark.parametrize("name", ["a", "verify-mail", "mail.send:now", 'O\'Brien "x"', "почта", "e\u0301", "x" * 200])
def test_a_name_that_every_store_keeps_is_taken_as_it_is(name: str) -> None:
    assert check_name("kind", name) is name


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        (3, "is 3; it takes a str"),
        ("", "is ''; it needs at least one character that can be seen"),
        (" \t", "is ' \\t'; it needs at least one character that can be seen"),
        ("mail ", "'mail ' begins or ends with a space; take it off"),
        ("\u00a0mail", "'\\xa0mail' begins or ends with a space; take it off"),
        ("a\0b", "'a\\x00b' holds '\\x00', which cannot be seen or kept; take it out"),
        ("a\nb", "'a\\nb' holds '\\n', which cannot be seen or kept; take it out"),
        ("a\u2028b", "'a\\u2028b' holds '\\u2028', which cannot be seen or kept; take it out"),
        ("a\ud800", "'a\\ud800' holds '\\ud800', which cannot be seen or kept; take it out"),
        ("x" * 201, f"'{'x' * 20}'… has 201 characters; shorten it to 200"),
    ],
)
def test_a_name_that_some_store_or_log_would_spoil_is_refused(name: Any, wrong: str) -> None:
    with pytest.raises(OptionError) as caught:
        check_name("queue", name)
    assert str(caught.value) == f"the queue name {wrong}"

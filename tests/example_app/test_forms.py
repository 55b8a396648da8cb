"""What is read from a form: addresses and passwords."""

from __future__ import annotations

import pytest

from example_app.forms import Form


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("ann@example.com", "ann@example.com"),
        ("  ann@example.com ", "ann@example.com"),
        ("Ann.Lee+news@Example.COM", "Ann.Lee+news@example.com"),
        ("ann@ｅｘａｍｐｌｅ.com", "ann@example.com"),
        ("ann@exämple.com", "ann@xn--exmple-cua.com"),
        ("a@b.co", "a@b.co"),
    ],
)
def test_an_address_is_read_in_its_one_form(typed: str, read: str) -> None:
    form = Form({"email": typed})
    assert form.email() == read
    assert form.problems == {}


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "ann",
        "ann@",
        "@example.com",
        "ann@example",
        "ann@example..com",
        "ann@-example.com",
        "ann@exam ple.com",
        "ann@127.0.0.1",
        ".ann@example.com",
        "ann.@example.com",
        "an n@example.com",
        "ann\n@example.com",
        "ann@example.com\nBcc: bob@example.com",
        "ann\x00@example.com",
        "josé@example.com",
        "ann@bob@example.com",
        "a" * 65 + "@example.com",
        "a@" + "b" * 64 + ".com",
        "a@" + ".".join(["b" * 60] * 5) + ".com",
    ],
)
def test_an_address_that_cannot_be_is_a_problem(typed: str) -> None:
    form = Form({"email": typed})
    assert form.email() == ""
    assert list(form.problems) == ["email"]


@pytest.mark.parametrize("length", [8, 1024])
def test_a_new_password_of_the_right_length_is_read(length: int) -> None:
    form = Form({"password": "x" * length})
    assert form.new_password() == "x" * length
    assert form.problems == {}


@pytest.mark.parametrize("length", [0, 7, 1025])
def test_a_new_password_of_another_length_is_a_problem(length: int) -> None:
    form = Form({"password": "x" * length})
    form.new_password()
    assert list(form.problems) == ["password"]


@pytest.mark.parametrize("length", [0, 1025])
def test_a_password_that_nobody_can_have_is_a_problem(length: int) -> None:
    form = Form({"password": "x" * length})
    form.password()
    assert list(form.problems) == ["password"]

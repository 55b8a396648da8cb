"""Passwords, kept as hashes."""

from __future__ import annotations

from example_app import passwords


async def test_a_hash_matches_its_password_only() -> None:
    kept = await passwords.hashed("correct horse")
    assert kept.startswith("$argon2id$")
    assert "correct horse" not in kept
    assert await passwords.matches("correct horse", kept)
    assert not await passwords.matches("correct horsE", kept)


async def test_the_same_characters_typed_another_way_are_the_same_password() -> None:
    kept = await passwords.hashed("caf\u00e9 caf\u00e9")
    assert await passwords.matches("cafe\u0301 cafe\u0301", kept)


async def test_nothing_matches_where_there_is_no_hash_or_none_that_can_be_read() -> None:
    assert not await passwords.matches("", None)
    assert not await passwords.matches("correct horse", None)
    assert not await passwords.matches("correct horse", "nonsense")

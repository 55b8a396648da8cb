"""Passwords, kept as Argon2 hashes."""

from __future__ import annotations

import asyncio
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

__all__ = ["LONGEST", "SHORTEST", "hashed", "matches"]

SHORTEST = 8
LONGEST = 1024

_hasher = PasswordHasher()
# A hash takes 64 MiB and tens of milliseconds: two at a time, and never on the event loop.
_threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="argon2")


async def hashed(password: str) -> str:
    """Hash a new password."""
    return await asyncio.get_running_loop().run_in_executor(_threads, _hasher.hash, _bytes(password))


async def matches(password: str, password_hash: str | None) -> bool:
    """Say whether the password is the hashed one. Takes as long when there is no hash, and says no."""
    return await asyncio.get_running_loop().run_in_executor(_threads, _matches, _bytes(password), password_hash)


def _matches(password: bytes, password_hash: str | None) -> bool:
    try:
        _hasher.verify(password_hash or _hash_of_nothing(), password)
    except (VerificationError, InvalidHashError):
        return False
    return password_hash is not None


@cache
def _hash_of_nothing() -> str:
    return _hasher.hash(b"")


def _bytes(password: str) -> bytes:
    # The same password typed on another keyboard may arrive in another form of the same characters.
    return unicodedata.normalize("NFKC", password).encode()

"""Passwords: argon2id, a few at a time.

One hash takes 64 MiB (RFC 9106's second recommendation) and all cores for a moment, so that forty at once would take
2.5 GB.  `MAX_CONCURRENT_HASHES` may work at the same time in a process; the others wait, and are refused after `MAX_WAIT_SECONDS`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from core.errors import InputError
from storage.records.annotation import SignInError

MIN_PASSWORD_CHARS, MAX_PASSWORD_CHARS = 8, 1024
MAX_CONCURRENT_HASHES = 2
MAX_WAIT_SECONDS, COME_BACK_SECONDS = 20.0, 5.0
_semaphore = threading.BoundedSemaphore(MAX_CONCURRENT_HASHES)


@cache
def _hasher() -> PasswordHasher:
    return PasswordHasher()  # 64 MiB, 3 passes, 4 lanes


@cache
def _dummy_hash() -> str:
    """The hash that a name without a password is checked against, so that it takes as long."""
    return _hasher().hash("correct horse battery staple")


@contextmanager
def _limited() -> Iterator[None]:
    """Raises SignInError if too many are waiting."""
    if not _semaphore.acquire(timeout=MAX_WAIT_SECONDS):
        raise SignInError(COME_BACK_SECONDS)
    try:
        yield
    finally:
        _semaphore.release()


def check_password(password: str) -> None:
    if not MIN_PASSWORD_CHARS <= len(password) <= MAX_PASSWORD_CHARS:
        raise InputError(
            f"a password has {MIN_PASSWORD_CHARS} to {MAX_PASSWORD_CHARS} characters; this one has {len(password)}"
        )
    try:
        password.encode()
    except UnicodeEncodeError:
        raise InputError("the password holds a lone surrogate (half of a character)") from None


def hashed(password: str) -> str:
    """The hash with its salt and parameters.  Raises InputError as `check_password`."""
    check_password(password)
    with _limited():
        return _hasher().hash(password)


def is_right(stored_hash: str | None, password: str) -> bool:
    """Whether the password matches.  Takes as long if no hash is stored.  Raises SignInError if too many are waiting."""
    with _limited():
        try:
            _hasher().verify(stored_hash or _dummy_hash(), password)
        except (VerificationError, InvalidHashError, UnicodeEncodeError):
            return False
    return stored_hash is not None


def renewed(stored_hash: str, password: str) -> str | None:
    """A new hash if the stored one was made with other parameters than the current ones, else None."""
    if not _hasher().check_needs_rehash(stored_hash):
        return None
    with _limited():
        return _hasher().hash(password)

"""Passwords' hashes, a few at once: each costs a core for a third of a second."""

from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher

from config.http.bulkhead import Bulkhead

PASSWORD_HASHES = Bulkhead("passwords", limit=settings.PASSWORD_HASHES_AT_ONCE)


class BoundedPasswordHasher(PBKDF2PasswordHasher):
    """Django's own, for every way to a hash: logging in, changing and setting passwords.

    Raises ``BulkheadFullError`` while as many as are allowed are being made in this process.
    """

    def encode(self, password: Any, salt: str, iterations: int | None = None) -> str:
        with PASSWORD_HASHES.place():
            return super().encode(password, salt, iterations)

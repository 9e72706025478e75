"""Limits concurrent password hashes: each occupies a core for a third of a second."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher

from accounts.models import User
from core.http.bulkhead import Bulkhead

# No organisation can take all places, nor can strangers together.
PASSWORD_HASHES = Bulkhead(
    "passwords",
    limit=settings.PASSWORD_HASHES_AT_ONCE,
    limit_per_key=max(1, settings.PASSWORD_HASHES_AT_ONCE - 1),
    max_waiting=settings.PASSWORD_HASHES_WAITING,
    wait_seconds=settings.PASSWORD_HASHES_WAIT_SECONDS,
)
_STRANGERS = ""
_share: ContextVar[str] = ContextVar("share of the password hashes", default=_STRANGERS)


class BoundedPasswordHasher(PBKDF2PasswordHasher):
    """Django's hasher with a limit on concurrent hashes in this process.

    Raises ``BulkheadFullError`` while the limit is reached.
    """

    def encode(self, password: Any, salt: str, iterations: int | None = None) -> str:
        share = _share.get()
        with PASSWORD_HASHES.place(share, waits=share != _STRANGERS):
            return super().encode(password, salt, iterations)


@contextmanager
def hashing_for(user: User | None) -> Iterator[None]:
    """Hashes in this context count towards the share of the user's organisation, and may wait.

    Those for ``None`` count towards the share of strangers.
    """
    token = _share.set(_STRANGERS if user is None else _share_of(user))
    try:
        yield
    finally:
        _share.reset(token)


def _share_of(user: User) -> str:
    return "superusers" if user.is_superuser else str(user.home_id or user.pk)

"""Secrets on their way from the POST that created them to the page that shows them once.

The POST keeps the secret and redirects; the first GET takes it. A reload finds nothing and repeats
nothing. In between, the secret is encrypted in a row of the session table, whose key is a digest of
the login, the user and the secret's name: no other login, user or page finds or decrypts it.

It is not part of the login's own session, because concurrent requests overwrite each other's
session data: a secret could get lost, or return after it was taken.
"""

from base64 import b64decode, b64encode
from datetime import timedelta

from django.contrib.sessions.models import Session as AdminSession
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import salted_hmac

from core.encryption import Cipher, DecryptionError

KEPT_FOR = timedelta(minutes=5)

_CIPHER = Cipher(b"moonhook secrets shown once")
_KEY_LENGTH = 40
_SEALED = "sealed"


def keep(request: HttpRequest, name: str, secret: str) -> None:
    """Keeps the secret for this login.

    ``name`` tells it from all others, and from earlier secrets of the same row.
    """
    context = _context(request, name)
    sealed = b64encode(_CIPHER.encrypt(secret.encode(), context)).decode()
    AdminSession.objects.create(
        session_key=_key(context),
        session_data=AdminSession.objects.encode({_SEALED: sealed}),
        expire_date=timezone.now() + KEPT_FOR,
    )


def is_kept(request: HttpRequest, name: str) -> bool:
    """Whether ``take`` would return the secret."""
    key = _key(_context(request, name))
    return AdminSession.objects.filter(pk=key, expire_date__gt=timezone.now()).exists()


def take(request: HttpRequest, name: str) -> str | None:
    """Returns the secret, once: of concurrent requests only one gets it."""
    context = _context(request, name)
    row = AdminSession.objects.filter(pk=_key(context), expire_date__gt=timezone.now()).first()
    if row is None:
        return None
    deleted, _ = AdminSession.objects.filter(pk=row.pk).delete()
    return _opened(row, context) if deleted else None


def _context(request: HttpRequest, name: str) -> str:
    return f"{request.session.session_key}:{request.user.pk}:{name}"


def _key(context: str) -> str:
    return salted_hmac(__name__, context, algorithm="sha256").hexdigest()[:_KEY_LENGTH]


def _opened(row: AdminSession, context: str) -> str | None:
    try:
        return _CIPHER.decrypt(b64decode(row.get_decoded()[_SEALED]), context).decode()
    except (DecryptionError, KeyError, ValueError):
        return None

"""Moves what is encrypted to the newest pepper."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db.models import Model, QuerySet

from core.encryption import Cipher, key_version
from scripts_engine.flows.call_notes.content import CONTENTS
from scripts_engine.flows.queue.hidden_parts import QUEUED_CALLS
from scripts_engine.flows.signing_secrets import SECRETS, VERIFY_TOKENS
from scripts_engine.models import Hook, QueueEntry, RefusedCall, SigningSecret


def reencrypt_hooks() -> int:
    """Encrypts with the newest pepper what hooks keep: signing secrets, verify tokens, refused
    calls, and the hidden parts of queued calls.

    Returns the number of rows changed. A row that is written at the same time keeps its new value.
    Raises ``DecryptionError`` if a pepper is missing.
    """
    verifying = Hook.objects.filter(verify_token_ciphertext__isnull=False)
    queued = QueueEntry.objects.filter(hidden_ciphertext__isnull=False)
    kept = RefusedCall.objects.filter(content_ciphertext__isnull=False)
    return (
        _move(SigningSecret.objects.all(), "ciphertext", SECRETS, lambda row: row.hook_id)
        + _move(verifying, "verify_token_ciphertext", VERIFY_TOKENS, lambda row: row.pk)
        + _move(kept, "content_ciphertext", CONTENTS, lambda row: row.pk)
        + _move(queued, "hidden_ciphertext", QUEUED_CALLS, lambda row: row.payload_of)
    )


def _move(
    rows: QuerySet[Any], column: str, cipher: Cipher, context_of: Callable[[Any], object]
) -> int:
    return sum(
        _is_moved(row, column, cipher, str(context_of(row))) for row in rows.order_by().iterator()
    )


def _is_moved(row: Model, column: str, cipher: Cipher, context: str) -> bool:
    """Whether the row was changed: not if it uses the newest pepper, or was deleted."""
    newest = next(iter(settings.PEPPERS))
    rows = type(row)._default_manager.filter(pk=row.pk)
    found: bytes | memoryview[int] | None = getattr(row, column)
    while found is not None and key_version(old := bytes(found)) != newest:
        renewed = cipher.encrypt(cipher.decrypt(old, context), context)
        if rows.filter(**{column: old}).update(**{column: renewed}):
            return True
        # The row was written since it was read.
        found = rows.values_list(column, flat=True).first()
    return False

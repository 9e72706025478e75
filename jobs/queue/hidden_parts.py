"""The parts of a queued call that its record hides: kept encrypted until the run has ended.

The record of a call shows neither an ``Authorization`` header nor a shared secret, but the script
of an accepted call must get what the script of any other call gets.
"""

import json
import uuid
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from core.encryption import Cipher, DecryptionError, key_version
from scripts_engine.models import Run
from scripts_engine.runs.spec import Event

QUEUED_CALLS = Cipher(b"moonhook queued calls")


def seal_hidden_parts(event: Event, recorded: Mapping[str, Any], run_id: uuid.UUID) -> bytes | None:
    """Encrypts what ``recorded``, the run's columns, lacks of the event; ``None`` if nothing."""
    hidden: dict[str, Any] = {}
    headers = [list(header) for header in event.headers]
    if recorded["request_headers"] != headers:
        hidden["headers"] = headers
    if recorded["request_query"] != event.query:
        hidden["query"] = event.query
    if recorded["request_path"] != event.path:
        hidden["path"] = event.path
    if recorded["request_body"] != event.body:
        hidden["body"] = event.body.decode("latin-1")
    if not hidden:
        return None
    return QUEUED_CALLS.encrypt(json.dumps(hidden).encode(), str(run_id))


def renewed(hidden_ciphertext: bytes | None, run_id: uuid.UUID) -> bytes | None:
    """The hidden parts of that run's call, encrypted with the newest pepper.

    Unchanged if they are already, or if their pepper is missing.
    """
    newest = next(iter(settings.PEPPERS))
    if hidden_ciphertext is None or key_version(hidden_ciphertext) == newest:
        return hidden_ciphertext
    try:
        content = QUEUED_CALLS.decrypt(hidden_ciphertext, str(run_id))
    except DecryptionError:
        return hidden_ciphertext
    return QUEUED_CALLS.encrypt(content, str(run_id))


def event_of_queued(run: Run, hidden_ciphertext: bytes | None) -> Event:
    """The call of a queued run. ``run`` is the one that has the payload.

    Raises ``DecryptionError`` if the hidden parts cannot be opened.
    """
    hidden: dict[str, Any] = {}
    if hidden_ciphertext is not None:
        hidden = json.loads(QUEUED_CALLS.decrypt(hidden_ciphertext, str(run.pk)))
    body = hidden.get("body")
    return Event(
        method=run.request_method,
        query=hidden.get("query", run.request_query),
        path=hidden.get("path", run.request_path),
        headers=tuple((name, value) for name, value in hidden.get("headers", run.request_headers)),
        body=bytes(run.request_body) if body is None else body.encode("latin-1"),
        client_address=run.client_address or "",
        sender=run.sender or "",
        verified=run.verified or "",
        event_id=run.event_id,
    )

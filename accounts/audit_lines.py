"""The audit log as lines for a collector of logs: ``AUDIT_LOG=stdout``."""

import json
import sys
from collections.abc import Iterable
from functools import partial
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction

from accounts.models import ActorKind, AuthEvent

logger = structlog.get_logger(__name__)


def write_lines(events: Iterable[AuthEvent]) -> None:
    """Writes one JSON object a line for each event, once it is committed, if so set."""
    if settings.IS_AUDIT_WRITTEN_TO_STDOUT:
        transaction.on_commit(partial(_write, list(events)))


def _write(events: list[AuthEvent]) -> None:
    for event in events:
        # A command answers on its standard output.
        stream = sys.stderr if event.actor_kind == ActorKind.COMMAND else sys.stdout
        try:
            stream.write(json.dumps(as_document(event)) + "\n")
            stream.flush()
        except OSError:
            logger.exception("An event was not written to the audit lines")


def as_document(event: AuthEvent) -> dict[str, Any]:
    """The event with the names that GraphQL gives its fields, and its organisation and user."""
    return {
        "audit": event.kind,
        "id": str(event.pk),
        "at": event.at.isoformat(),
        "organisation": _text(event.organisation_id),
        "user": _text(event.user_id),
        "reason": event.reason,
        "email": event.email,
        "credential": event.credential,
        "clientAddress": event.client_address,
        "userAgent": event.user_agent,
        "requestId": event.request_id,
        "actorKind": event.actor_kind,
        "actorId": event.actor_id,
        "actorLabel": event.actor_label,
        "subjectKind": event.subject_kind,
        "subjectId": event.subject_id,
        "subjectLabel": event.subject_label,
    }


def _text(value: object) -> str | None:
    return None if value is None else str(value)

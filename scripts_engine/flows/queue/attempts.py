"""What follows an attempt: nothing, another attempt, or a dead letter."""

import random
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from django.utils import timezone
from uuid_utils.compat import uuid7

from scripts_engine.flows.queue.enqueue import QueuedRows, entry_row
from scripts_engine.flows.queue.hidden_parts import renewed
from scripts_engine.flows.run_payloads import measured
from scripts_engine.models import QueueEntry, Run, RunStatus

FIRST_DELAY_SECONDS = 10
LONGEST_DELAY_SECONDS = 3600
_GROWTH = 4

# Taken over from the attempt before. The payload stays with the first one.
_SHARED = (
    "organisation_id",
    "script_id",
    "script_version_id",
    "hook_id",
    "trigger",
    "started_by_id",
    "started_with_id",
    "request_method",
    "request_query",
    "request_headers",
    "client_address",
    "sender",
    "verified",
    "event_id",
    "pushed_by_id",
    "replay_of_id",
    "chain_depth",
    "schedule_id",
    "scheduled_at",
)


def backoff(attempt: int) -> float:
    """Seconds until the attempt after that one: four times as long each time, half of it random."""
    delay = min(FIRST_DELAY_SECONDS * _GROWTH ** (attempt - 1), LONGEST_DELAY_SECONDS)
    return delay / 2 + random.uniform(0, delay / 2)  # noqa: S311  (nothing to guess)


def next_attempt(run: Run, entry: QueueEntry, due_at: datetime) -> QueuedRows:
    """The rows of the attempt after ``run``."""
    row: dict[str, Any] = {name: getattr(run, name) for name in _SHARED}
    row |= {
        "id": uuid7(),
        "status": RunStatus.QUEUED.value,
        "started_at": timezone.now(),
        "queued_ms": 0.0,
        "duration_ms": 0.0,
        "unsaved_source": "",
        "request_body": b"",
        "response_status": HTTPStatus.ACCEPTED.value,
        "response_headers": [],
        "response_body": b"",
        "logs": [],
        "host_calls": [],
        "error_message": "",
        "error_line": None,
        "error_traceback": "",
        "payload_removed_at": None,
        "attempt": entry.attempt + 1,
        "first_run_id": run.first_attempt_id,
        "is_dead_letter": None,
    }
    rows = measured(row) | {"request_bytes": run.request_bytes}
    hidden = entry.hidden_ciphertext
    following = entry_row(
        row,
        payload_of=entry.payload_of,
        due_at=due_at,
        max_attempts=entry.max_attempts,
        # The entry may have been read before its parts moved to another pepper.
        hidden_ciphertext=renewed(None if hidden is None else bytes(hidden), entry.payload_of),
    )
    return QueuedRows(rows, following)


def follow(
    run: Run, entry: QueueEntry, *, is_final: bool = False, after_seconds: float | None = None
) -> QueuedRows | None:
    """The rows of the next attempt; ``None`` if there is none, so the failed run is a dead letter.

    ``after_seconds`` is what the script asked for; by default the delay grows.
    """
    if is_final or entry.attempt >= entry.max_attempts:
        return None
    delay = backoff(entry.attempt) if after_seconds is None else after_seconds
    return next_attempt(run, entry, timezone.now() + timedelta(seconds=delay))

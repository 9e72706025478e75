"""The columns of a run: what is recorded of a call and of the outcome."""

import uuid
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone

from core.http.redaction import REDACTED
from scripts_engine.event import Event
from scripts_engine.flows.record_run import Row
from scripts_engine.flows.run_spec import RunSpec
from scripts_engine.host.call_summary import summaries_of
from scripts_engine.models import RunStatus
from scripts_engine.redaction import Redactor, storable
from scripts_engine.sandbox.contract import Outcome, OutcomeKind, Retry
from scripts_engine.sandbox.limits import (
    MAX_HEADER_BYTES,
    MAX_LOG_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_REPLY_BYTES,
    MAX_SOURCE_BYTES,
    MAX_TRACEBACK_BYTES,
)
from scripts_engine.sandbox.log_area import MAX_TEXT_BYTES

_REDACTED_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key"})

MAX_EVENT_ID_CHARACTERS = 500

STATUS_OF = {
    OutcomeKind.SUCCEEDED: RunStatus.SUCCEEDED.value,
    OutcomeKind.FAILED: RunStatus.FAILED.value,
    OutcomeKind.TIMED_OUT: RunStatus.TIMED_OUT.value,
    OutcomeKind.OUT_OF_MEMORY: RunStatus.OUT_OF_MEMORY.value,
    OutcomeKind.REPLY_TOO_LARGE: RunStatus.FAILED.value,
}

# The status of the response where the script gave no reply.
_HTTP_STATUS = {
    OutcomeKind.FAILED: 500,
    OutcomeKind.TIMED_OUT: 504,
    OutcomeKind.OUT_OF_MEMORY: 500,
    OutcomeKind.REPLY_TOO_LARGE: 500,
}


# The columns of the queue in runs that never were in it.
NOT_QUEUED: dict[str, Any] = {
    "attempt": None,
    "first_run_id": None,
    "pushed_by_id": None,
    "replay_of_id": None,
    "chain_depth": None,
    "is_dead_letter": None,
    "schedule_id": None,
    "scheduled_at": None,
}
_NO_OUTCOME: dict[str, Any] = {
    "status": RunStatus.QUEUED.value,
    "queued_ms": 0.0,
    "duration_ms": 0.0,
    "response_headers": [],
    "response_body": b"",
    "logs": [],
    "host_calls": [],
    "error_message": "",
    "error_line": None,
    "error_traceback": "",
}


def run_params(spec: RunSpec, event: Event, run_id: uuid.UUID) -> dict[str, bytes]:
    own_id = str(run_id).encode()
    params = {
        "method": event.method.encode("latin-1"),
        "query": event.query.encode("latin-1"),
        "remote_addr": event.client_address.encode("latin-1"),
        "run_id": own_id,
        "trigger": spec.trigger.value.encode(),
        "attempt": str(spec.attempt).encode(),
        "first_run_id": str(spec.first_run_id).encode() if spec.first_run_id else own_id,
        "org_id": str(spec.organisation_id).encode(),
        "body": event.body,
    }
    if (content_type := event.content_type) is not None:
        params["content_type"] = content_type.encode("latin-1")
    if spec.hook_id is not None:
        params["hook_id"] = str(spec.hook_id).encode()
    if spec.script_id is not None:
        params["script_id"] = str(spec.script_id).encode()
    if spec.scheduled_at is not None:
        params["scheduled_at"] = spec.scheduled_at.astimezone(UTC).isoformat().encode()
    if event.sender:
        params["sender"] = event.sender.encode()
        params["verified"] = event.verified.encode()
        if event.event_id:
            params["event_id"] = event.event_id.encode()
    return params


def run_row(
    spec: RunSpec, event: Event, run_id: uuid.UUID, outcome: Outcome, redactor: Redactor
) -> Row:
    """The columns of a run that has ended, but its sizes."""
    return {
        **_origin_columns(spec, run_id),
        **NOT_QUEUED,
        **request_columns(event, redactor),
        **outcome_columns(outcome, redactor),
        "unsaved_source": "" if spec.version_id else redactor.text(spec.source, MAX_SOURCE_BYTES),
        "payload_removed_at": None,
    }


def queued_row(
    spec: RunSpec, event: Event, run_id: uuid.UUID, *, response_status: int, redactor: Redactor
) -> Row:
    """The columns of a run that is yet to start, but its sizes: it counts from now on."""
    return {
        **_origin_columns(spec, run_id),
        **NOT_QUEUED,
        **request_columns(event, redactor),
        **_NO_OUTCOME,
        "started_at": timezone.now(),
        "response_status": response_status,
        "unsaved_source": "",
        "payload_removed_at": None,
        "attempt": spec.attempt,
        "first_run_id": spec.first_run_id,
        "scheduled_at": spec.scheduled_at,
        "chain_depth": spec.chain_depth,
    }


def _origin_columns(spec: RunSpec, run_id: uuid.UUID) -> dict[str, Any]:
    author = spec.started_by
    return {
        "id": run_id,
        "organisation_id": spec.organisation_id,
        "script_id": spec.script_id,
        "script_version_id": spec.version_id,
        "hook_id": spec.hook_id,
        "trigger": spec.trigger.value,
        "started_by_id": None if author.user is None else author.user.pk,
        "started_with_id": None if author.api_key is None else author.api_key.pk,
    }


def request_columns(event: Event, redactor: Redactor) -> dict[str, Any]:
    """What is recorded of the call, with secrets hidden."""
    return {
        "request_method": storable(event.method),
        "request_query": redactor.text(event.query, max(len(event.query), MAX_HEADER_BYTES)),
        "request_headers": [
            [
                storable(name),
                REDACTED
                if name.lower() in _REDACTED_HEADERS or redactor.is_hidden_in(value)
                else storable(value),
            ]
            for name, value in event.headers
        ],
        "request_body": _recorded_body(event),
        "client_address": event.client_address or None,
        "sender": event.sender or None,
        "verified": event.verified or None,
        "event_id": None
        if event.event_id is None
        else storable(event.event_id)[:MAX_EVENT_ID_CHARACTERS],
    }


def outcome_columns(outcome: Outcome, redactor: Redactor) -> dict[str, Any]:
    """How a run ended, with secrets redacted and texts limited."""
    reply, error = outcome.reply, outcome.error
    log = [line.text for line in outcome.logs]
    is_log_full = sum(map(_size_bytes, log)) >= MAX_LOG_BYTES
    # A full log ends with a truncated line and a line that says so.
    log_texts = redactor.texts(log, MAX_TEXT_BYTES, cut=2 if is_log_full else 0)
    call_errors = redactor.texts([call.error or "" for call in outcome.host_calls], MAX_LOG_BYTES)
    summaries = summaries_of(outcome.host_calls, redactor, MAX_LOG_BYTES)
    return {
        "status": STATUS_OF[outcome.kind],
        "started_at": datetime.fromtimestamp(outcome.started_at, UTC),
        "queued_ms": round(outcome.queue_seconds * 1000, 3),
        "duration_ms": round(outcome.duration_seconds * 1000, 3),
        "response_status": _response_status(outcome),
        "response_headers": []
        if reply is None
        else redactor.headers(reply.headers, MAX_HEADER_BYTES),
        "response_body": b"" if reply is None else redactor.bytes(reply.body, MAX_REPLY_BYTES),
        "logs": [
            {"at": line.at, "level": line.level, "text": text}
            for line, text in zip(outcome.logs, log_texts, strict=True)
        ],
        "host_calls": [
            {
                "name": call.name,
                "offsetMs": round(call.offset_seconds * 1000, 3),
                "durationMs": round(call.duration_seconds * 1000, 3),
                "error": None if call.ok else problem,
                "summary": summary,
                "hint": call.hint,
            }
            for call, problem, summary in zip(
                outcome.host_calls, call_errors, summaries, strict=True
            )
        ],
        "error_message": ""
        if error is None
        else _limited(redactor, error.message, MAX_MESSAGE_BYTES),
        "error_line": None if error is None else error.line,
        "error_traceback": ""
        if error is None
        else _limited(redactor, error.traceback, MAX_TRACEBACK_BYTES),
    }


def _response_status(outcome: Outcome) -> int:
    if outcome.reply is not None:
        return outcome.reply.status
    return 503 if isinstance(outcome.verdict, Retry) else _HTTP_STATUS[outcome.kind]


def _recorded_body(event: Event) -> bytes:
    if not event.shared_secrets:
        return event.body
    hidden = Redactor(secret.encode() for secret in event.shared_secrets)
    return hidden.bytes(event.body, max(len(event.body), len(REDACTED)))


def _limited(redactor: Redactor, text: str, max_bytes: int) -> str:
    """Redacts a text that the sandbox has truncated to this size if it was longer."""
    return redactor.text(text, max_bytes, is_cut=_size_bytes(text) >= max_bytes)


def _size_bytes(text: str) -> int:
    """The size in UTF-8: at least that of the bytes that the text was decoded from."""
    return len(text.encode())

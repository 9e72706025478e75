"""The row of a run: what is recorded of its call and of its outcome, and how large that is."""

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from django.utils import timezone

from core.database.commit_order import THIS_COMMIT
from core.database.compiled_query import JsonText
from core.http.redaction import REDACTED
from scripts_engine.models import RunStatus
from scripts_engine.redaction import Redactor, storable
from scripts_engine.runs.spec import Event, RunOrigin, SavedRun, TryOut
from scripts_engine.sandbox import (
    MAX_HEADER_BYTES,
    MAX_LOG_BYTES,
    MAX_LOG_TEXT_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_REPLY_BYTES,
    MAX_SOURCE_BYTES,
    MAX_TRACEBACK_BYTES,
    HostCall,
    Outcome,
    OutcomeKind,
    Retry,
)

# A run's values by column name.
Row = Mapping[str, Any]

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
    "cpu_ms": 0.0,
    "response_headers": [],
    "response_body": b"",
    "logs": [],
    "host_calls": [],
    "error_message": "",
    "error_line": None,
    "error_traceback": "",
}

_BODIES = ("request_body", "response_body")
_TEXTS = ("request_query", "request_path", "unsaved_source", "error_traceback")
_JSON = ("request_headers", "response_headers", "logs", "host_calls")
NO_PAYLOAD: dict[str, Any] = {
    **dict.fromkeys(_BODIES, b""),
    **dict.fromkeys(_TEXTS, ""),
    **{name: [] for name in _JSON},
    "payload_bytes": 0,
}

MAX_SUBJECT_CHARS = 160
MAX_RESULT_CHARS = 60
# Enough for any subject after redaction, which may lengthen it.
_MAX_REDACTED_BYTES = 64 * 1024
_SCHEME = re.compile(r"(?i)^https?://")
_QUERY_OR_FRAGMENT = re.compile(r"[?#].*", re.DOTALL)


def run_row(
    spec: SavedRun | TryOut,
    event: Event,
    run_id: uuid.UUID,
    outcome: Outcome,
    redactor: Redactor,
) -> Row:
    """The columns of a run that has ended, but its sizes."""
    is_saved = spec.version_id is not None
    return {
        "id": run_id,
        **spec.columns(),
        **NOT_QUEUED,
        **request_columns(event, redactor),
        **outcome_columns(outcome, redactor),
        "unsaved_source": "" if is_saved else redactor.text(spec.source.decode(), MAX_SOURCE_BYTES),
        "payload_removed_at": None,
        "ended_in": THIS_COMMIT,
    }


def queued_row(
    origin: RunOrigin,
    event: Event,
    run_id: uuid.UUID,
    *,
    response_status: int,
    redactor: Redactor,
) -> Row:
    """The columns of a first attempt that is yet to start, but its sizes: it counts from now on."""
    return {
        "id": run_id,
        **origin.columns(),
        **NOT_QUEUED,
        **request_columns(event, redactor),
        **_NO_OUTCOME,
        "started_at": timezone.now(),
        "response_status": response_status,
        "unsaved_source": "",
        "payload_removed_at": None,
        "ended_in": None,
        "attempt": 1,
    }


def request_columns(event: Event, redactor: Redactor) -> dict[str, Any]:
    """What is recorded of the call, with secrets hidden."""
    return {
        "request_method": storable(event.method),
        "request_query": redactor.text(event.query, max(len(event.query), MAX_HEADER_BYTES)),
        "request_path": redactor.text(event.path, max(len(event.path), MAX_HEADER_BYTES)),
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
    log_texts = redactor.texts(log, MAX_LOG_TEXT_BYTES, cut=2 if is_log_full else 0)
    call_errors = redactor.texts([call.error or "" for call in outcome.host_calls], MAX_LOG_BYTES)
    summaries = summaries_of(outcome.host_calls, redactor, MAX_LOG_BYTES)
    return {
        "status": STATUS_OF[outcome.kind],
        "started_at": datetime.fromtimestamp(outcome.started_at, UTC),
        "queued_ms": round(outcome.queue_seconds * 1000, 3),
        "duration_ms": round(outcome.duration_seconds * 1000, 3),
        "cpu_ms": round(outcome.cpu_seconds * 1000, 3),
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


def measured(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a run as it is recorded: its JSON as text, and with its size columns."""
    texts = {name: json.dumps(row[name]) for name in _JSON if row[name]}
    request_bytes, response_bytes = (len(row[name]) for name in _BODIES)
    payload_bytes = (
        request_bytes
        + response_bytes
        + sum(len(row[name].encode()) for name in _TEXTS)
        # SQLite stores exactly this text, in which a character may take twelve bytes.
        + sum(map(len, texts.values()))
    )
    return {
        **row,
        **{name: JsonText(text) for name, text in texts.items()},
        "request_bytes": request_bytes,
        "response_bytes": response_bytes,
        "payload_bytes": payload_bytes,
    }


def without_reply(row: Mapping[str, Any], problem: str) -> dict[str, Any]:
    """The measured row of a run that failed after its script: nobody gets the reply."""
    headers = row["response_headers"]
    reply_bytes = row["response_bytes"] + (len(headers.text) if headers else 0)
    return {
        **row,
        "status": RunStatus.FAILED.value,
        "response_status": HTTPStatus.INTERNAL_SERVER_ERROR.value,
        "response_headers": [],
        "response_body": b"",
        "response_bytes": 0,
        "payload_bytes": row["payload_bytes"] - reply_bytes,
        "error_message": problem,
    }


def summaries_of(calls: Iterable[HostCall], redactor: Redactor, max_chars: int) -> Iterator[str]:
    """Yields each call's summary, ``max_chars`` in total; then the names of the functions."""
    left = max_chars
    for call in calls:
        summary = _summary_of(call, redactor)
        left -= len(summary)
        yield summary if left >= 0 else call.name


def _summary_of(call: HostCall, redactor: Redactor) -> str:
    """Redacts before anything is left out or cut, because a part of a secret is not recognised."""
    subject = redactor.bytes(call.subject, _MAX_REDACTED_BYTES)
    is_request = call.name.startswith("http.")
    if redactor.is_disguised_in(subject):
        subject = (subject.split(b" ")[0] + b" " if is_request else b"") + REDACTED.encode()
    text = subject.decode("utf-8", "backslashreplace")
    if is_request:
        summary = _cut(_printable(_without_query(text))) or call.name
    else:
        summary = f"{call.name} {_cut(_printable(text))}".rstrip()
    result = redactor.text(call.result, MAX_RESULT_CHARS)
    return f"{summary} → {result}" if result else summary


def _without_query(request: str) -> str:
    """Leaves out the scheme, the query string (often credentials) and the fragment."""
    method, _, url = request.partition(" ")
    shown = _QUERY_OR_FRAGMENT.sub("", _SCHEME.sub("", url))
    has_query = "?" in url.partition("#")[0]
    return f"{method} {shown}{'?…' if has_query else ''}".rstrip()


def _printable(text: str) -> str:
    """Escapes control characters and others that are invisible or change the direction."""
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in text
    )


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SUBJECT_CHARS else f"{text[: MAX_SUBJECT_CHARS - 1]}…"

"""Runs a script: one execution in a sandbox, and one ``Run`` committed before the reply."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, Self

from structlog.contextvars import bind_contextvars
from uuid_utils.compat import uuid7

from core.http.redaction import REDACTED
from core.metrics.catalogue import count_run
from scripts_engine.event import Event
from scripts_engine.flows.author import NOBODY, Author
from scripts_engine.flows.record_run import Row, record_run
from scripts_engine.flows.run_payloads import measured
from scripts_engine.host.call_summary import summaries_of
from scripts_engine.host.handler import RunHost
from scripts_engine.host.unrecorded import UnrecordedHost
from scripts_engine.models import Run, RunStatus, Script, Trigger
from scripts_engine.redaction import Redactor, storable
from scripts_engine.sandbox.contract import Job, Outcome, OutcomeKind
from scripts_engine.sandbox.limits import (
    MAX_HEADER_BYTES,
    MAX_LOG_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_REPLY_BYTES,
    MAX_SOURCE_BYTES,
    MAX_TRACEBACK_BYTES,
    Limits,
)
from scripts_engine.sandbox.log_area import MAX_TEXT_BYTES
from scripts_engine.sandbox_pool import sandbox_pool

_REDACTED_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key"})

_STATUS = {
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


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What to run, for whom and why."""

    organisation_id: uuid.UUID
    script_id: uuid.UUID | None
    """``None`` for a script that is not saved; its runs are not recorded."""
    script_name: str
    timeout_seconds: float
    version_id: uuid.UUID | None
    """``None`` for a source that is not saved."""
    source: str
    trigger: Trigger
    hook_id: uuid.UUID | None = None
    started_by: Author = NOBODY

    @classmethod
    def of_script(
        cls,
        script: Script,
        *,
        trigger: Trigger,
        hook_id: uuid.UUID | None = None,
        started_by: Author = NOBODY,
    ) -> Self:
        """A run of the script's current version."""
        return cls(
            organisation_id=script.organisation_id,
            script_id=script.pk,
            script_name=script.name,
            timeout_seconds=script.timeout_seconds,
            version_id=script.current_version_id,
            source=script.source,
            trigger=trigger,
            hook_id=hook_id,
            started_by=started_by,
        )


class FinishedRun(NamedTuple):
    run_id: uuid.UUID
    outcome: Outcome


def run_script(spec: RunSpec, event: Event) -> FinishedRun:
    """Runs the source with the event as its payload, and returns once the run is committed.

    Raises ``SandboxBusy`` or ``SandboxUnavailable`` if nothing ran: then there is no run. Raises
    ``RunNotRecordedError`` if the script ran but its run could not be stored.
    """
    run_id, outcome, row = _execute(spec, event, RunHost(spec.organisation_id))
    record_run(measured(row))
    return FinishedRun(run_id, outcome)


def run_unrecorded(spec: RunSpec, event: Event) -> Run:
    """Runs the source without store and secrets, and returns a ``Run`` that is not saved.

    Raises ``SandboxBusy`` or ``SandboxUnavailable`` if nothing ran.
    """
    return Run(**_execute(spec, event, UnrecordedHost(spec.organisation_id)).row)


class _Execution(NamedTuple):
    run_id: uuid.UUID
    outcome: Outcome
    row: Row


def _execute(spec: RunSpec, event: Event, host: RunHost | UnrecordedHost) -> _Execution:
    run_id = uuid7()
    bind_contextvars(run=run_id)
    job = Job(
        source=spec.source.encode(),
        chunk_name=spec.script_name,
        params=_params(spec, event, run_id),
        headers=[
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in event.headers
        ],
        limits=Limits(wall_seconds=spec.timeout_seconds),
        trace_lines=spec.trigger is not Trigger.HOOK,
    )
    outcome = sandbox_pool().run(str(spec.organisation_id), job, host)
    _count(spec.trigger, outcome)
    redactor = Redactor(host.revealed_secrets)
    return _Execution(run_id, outcome, _row(spec, event, run_id, outcome, redactor))


def _count(trigger: Trigger, outcome: Outcome) -> None:
    count_run(_STATUS[outcome.kind], trigger.value, outcome.duration_seconds, outcome.queue_seconds)


def _params(spec: RunSpec, event: Event, run_id: uuid.UUID) -> dict[str, bytes]:
    params = {
        "method": event.method.encode("latin-1"),
        "query": event.query.encode("latin-1"),
        "remote_addr": event.client_address.encode("latin-1"),
        "run_id": str(run_id).encode(),
        "org_id": str(spec.organisation_id).encode(),
        "body": event.body,
    }
    if (content_type := event.content_type) is not None:
        params["content_type"] = content_type.encode("latin-1")
    if spec.hook_id is not None:
        params["hook_id"] = str(spec.hook_id).encode()
    if spec.script_id is not None:
        params["script_id"] = str(spec.script_id).encode()
    return params


def _row(
    spec: RunSpec, event: Event, run_id: uuid.UUID, outcome: Outcome, redactor: Redactor
) -> Row:
    """The run's columns but its sizes, with secrets redacted and texts limited."""
    reply, error, author = outcome.reply, outcome.error, spec.started_by
    log = [line.text for line in outcome.logs]
    is_log_full = sum(map(_size_bytes, log)) >= MAX_LOG_BYTES
    # A full log ends with a truncated line and a line that says so.
    log_texts = redactor.texts(log, MAX_TEXT_BYTES, cut=2 if is_log_full else 0)
    call_errors = redactor.texts([call.error or "" for call in outcome.host_calls], MAX_LOG_BYTES)
    summaries = summaries_of(outcome.host_calls, redactor, MAX_LOG_BYTES)
    return {
        "id": run_id,
        "organisation_id": spec.organisation_id,
        "script_id": spec.script_id,
        "script_version_id": spec.version_id,
        "unsaved_source": "" if spec.version_id else redactor.text(spec.source, MAX_SOURCE_BYTES),
        "hook_id": spec.hook_id,
        "trigger": spec.trigger.value,
        "started_by_id": None if author.user is None else author.user.pk,
        "started_with_id": None if author.api_key is None else author.api_key.pk,
        "status": _STATUS[outcome.kind],
        "started_at": datetime.fromtimestamp(outcome.started_at, UTC),
        "queued_ms": round(outcome.queue_seconds * 1000, 3),
        "duration_ms": round(outcome.duration_seconds * 1000, 3),
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
        "request_body": event.body,
        "client_address": event.client_address or None,
        "response_status": _HTTP_STATUS[outcome.kind] if reply is None else reply.status,
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
        "payload_removed_at": None,
    }


def _limited(redactor: Redactor, text: str, max_bytes: int) -> str:
    """Redacts a text that the sandbox has truncated to this size if it was longer."""
    return redactor.text(text, max_bytes, is_cut=_size_bytes(text) >= max_bytes)


def _size_bytes(text: str) -> int:
    """The size in UTF-8: at least that of the bytes that the text was decoded from."""
    return len(text.encode())

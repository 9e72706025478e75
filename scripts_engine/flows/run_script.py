"""A script runs: one execution in a sandbox, and one Run committed before anybody is answered."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from django.db import IntegrityError, OperationalError, close_old_connections, connection
from structlog.contextvars import bind_contextvars
from uuid_utils.compat import uuid7

from config.http.redaction import REDACTED
from config.http.unavailable import DATABASE_ERRORS
from config.metrics.catalogue import RUN_DURATION, RUN_QUEUE, RUNS
from scripts_engine.event import Event
from scripts_engine.flows.author import NOBODY, Author
from scripts_engine.flows.recorder import Recorder
from scripts_engine.host.handler import RunHost
from scripts_engine.models import Hook, Run, RunStatus, Script, ScriptVersion, Trigger
from scripts_engine.sandbox.job import Job
from scripts_engine.sandbox.limits import Limits
from scripts_engine.sandbox.outcome import Outcome, OutcomeKind
from scripts_engine.sandbox_pool import sandbox_pool

_REDACTED_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key"})

_STATUS = {
    OutcomeKind.SUCCEEDED: RunStatus.SUCCEEDED,
    OutcomeKind.FAILED: RunStatus.FAILED,
    OutcomeKind.TIMED_OUT: RunStatus.TIMED_OUT,
    OutcomeKind.OUT_OF_MEMORY: RunStatus.OUT_OF_MEMORY,
    OutcomeKind.REPLY_TOO_LARGE: RunStatus.FAILED,
}

# What the caller was answered where the script gave no reply.
_HTTP_STATUS = {
    OutcomeKind.FAILED: 500,
    OutcomeKind.TIMED_OUT: 504,
    OutcomeKind.OUT_OF_MEMORY: 500,
    OutcomeKind.REPLY_TOO_LARGE: 500,
}


@dataclass(frozen=True, slots=True)
class Subject:
    """What is to run, for whom and why. ``version`` is ``None`` for a source not saved."""

    script: Script
    version: ScriptVersion | None
    source: str
    trigger: Trigger
    hook: Hook | None = None
    started_by: Author = NOBODY


class FinishedRun(NamedTuple):
    run: Run
    outcome: Outcome


class RunNotRecordedError(OperationalError):
    """The script ran, but the database did not take its run."""


def run_script(subject: Subject, event: Event) -> FinishedRun:
    """Runs the source with the event as its payload; the run is committed when this returns.

    Raises ``SandboxBusy`` when no slot comes free in time, and ``SandboxUnavailable``: nothing
    ran, and there is no run. Raises ``RunNotRecordedError``.
    """
    run_id = uuid7()
    bind_contextvars(run=run_id)
    job = Job(
        source=subject.source.encode(),
        chunk_name=subject.script.name,
        params=_params(subject, event, run_id),
        headers=[
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in event.headers
        ],
        limits=Limits(wall_seconds=subject.script.timeout_seconds),
        trace_lines=subject.trigger is not Trigger.HOOK,
    )
    host = RunHost(subject.script.organisation)
    outcome = sandbox_pool().run(str(subject.script.organisation_id), job, host)
    _count(subject.trigger, outcome)
    recorder = Recorder(hidden=host.revealed_secrets)
    run = _run_of(subject, event, run_id, outcome, recorder)
    _store(run)
    return FinishedRun(run, outcome)


def _count(trigger: Trigger, outcome: Outcome) -> None:
    RUNS.inc(_STATUS[outcome.kind].value, trigger.value)
    RUN_DURATION.observe(outcome.duration_seconds, trigger.value)
    RUN_QUEUE.observe(outcome.queue_seconds)


def _params(subject: Subject, event: Event, run_id: uuid.UUID) -> dict[str, bytes]:
    texts = {
        "method": event.method,
        "query": event.query,
        "content_type": event.content_type,
        "remote_addr": event.client_address,
        "run_id": str(run_id),
        "hook_id": None if subject.hook is None else str(subject.hook.pk),
        "script_id": str(subject.script.pk),
        "org_id": str(subject.script.organisation_id),
    }
    params = {name: text.encode("latin-1") for name, text in texts.items() if text is not None}
    return params | {"body": event.body}


def _run_of(
    subject: Subject, event: Event, run_id: uuid.UUID, outcome: Outcome, recorder: Recorder
) -> Run:
    reply, error = outcome.reply, outcome.error
    return Run(
        id=run_id,
        organisation_id=subject.script.organisation_id,
        script=subject.script,
        script_version=subject.version,
        unsaved_source="" if subject.version else recorder.text(subject.source),
        hook=subject.hook,
        trigger=subject.trigger,
        started_by=subject.started_by.user,
        started_with=subject.started_by.api_key,
        status=_STATUS[outcome.kind],
        started_at=datetime.fromtimestamp(outcome.started_at, UTC),
        queued_ms=round(outcome.queue_seconds * 1000, 3),
        duration_ms=round(outcome.duration_seconds * 1000, 3),
        request_method=event.method,
        request_query=event.query,
        request_headers=[
            [name, REDACTED if name.lower() in _REDACTED_HEADERS else value]
            for name, value in event.headers
        ],
        request_body=event.body,
        client_address=event.client_address or None,
        response_status=_HTTP_STATUS[outcome.kind] if reply is None else reply.status,
        response_headers=[]
        if reply is None
        else [[name, recorder.text(value)] for name, value in reply.headers],
        response_body=b"" if reply is None else recorder.bytes(reply.body),
        logs=[
            {"at": line.at, "level": line.level, "text": recorder.text(line.text)}
            for line in outcome.logs
        ],
        host_calls=[
            {
                "name": call.name,
                "offsetMs": round(call.offset_seconds * 1000, 3),
                "durationMs": round(call.duration_seconds * 1000, 3),
                "error": call.error and recorder.text(call.error),
            }
            for call in outcome.host_calls
        ],
        error_message="" if error is None else recorder.text(error.message),
        error_line=None if error is None else error.line,
        error_traceback="" if error is None else recorder.text(error.traceback),
    )


def _store(run: Run) -> None:
    """Once more where the connection was lost while the script ran; the id keeps it one run."""
    try:
        run.save(force_insert=True)
    except DATABASE_ERRORS as error:
        close_old_connections()
        if connection.connection is not None:
            raise RunNotRecordedError(f"run {run.pk}: {error}") from error
        _store_again(run)


def _store_again(run: Run) -> None:
    try:
        run.save(force_insert=True)
    except IntegrityError:
        # The first time was committed, only its answer was lost; else this raises.
        Run.objects.only("id").get(pk=run.pk)
    except DATABASE_ERRORS as error:
        raise RunNotRecordedError(f"run {run.pk}: {error}") from error

"""Runs what a runner has claimed, in one of its threads."""

import logging
import uuid
from typing import Any

from core.encryption import DecryptionError
from core.logs.context import binding
from jobs.metrics import QUEUE_WAIT
from jobs.pushes import PushedRuns
from jobs.queue.claim import Claimed, pinned_version_of
from jobs.queue.finish import EndedRun
from jobs.queue.hidden_parts import event_of_queued, seal_hidden_parts
from scripts_engine.host.handler import RunHost
from scripts_engine.models import Run, RunStatus, Script, Trigger
from scripts_engine.runs.execution import Execution, execute
from scripts_engine.runs.rows import Row, measured
from scripts_engine.runs.spec import Event, QueuedAttempt, pinned_to
from scripts_engine.sandbox import (
    Fail,
    Outcome,
    OutcomeKind,
    Retry,
    SandboxBusy,
    SandboxUnavailable,
)
from scripts_engine.sandbox_pool import sandbox_pool

logger = logging.getLogger(__name__)

# What a run gains by its end. The rest was recorded when it was queued.
_OUTCOME = (
    "status",
    "started_at",
    "queued_ms",
    "duration_ms",
    "cpu_ms",
    "script_version_id",
    "response_status",
    "response_headers",
    "response_body",
    "logs",
    "host_calls",
    "error_message",
    "error_line",
    "error_traceback",
    "response_bytes",
    "payload_bytes",
)
# Recorded once more if the script has read secrets, which the call may contain.
_CALL = ("request_query", "request_path", "request_headers")


def run_claimed(claimed: Claimed) -> EndedRun:
    """Runs the script.

    Raises ``SandboxBusy``, ``SandboxUnavailable`` or a database error if nothing ran.
    """
    run = claimed.entry.run
    spec = _spec(run, claimed)
    with binding(organisation=run.organisation_id, script=run.script_id, run=run.pk):
        event = _event(run, claimed)
        if event is None:
            return _not_runnable(run, spec, claimed)
        waited = (run.started_at - claimed.entry.due_at).total_seconds()
        QUEUE_WAIT.observe(max(0.0, waited))
        host = RunHost(run.organisation_id, recorded=spec.recorded(run.pk))
        execution = execute(spec, event, host, run.pk)
        if execution.outcome.kind is not OutcomeKind.SUCCEEDED:
            host.abandon()
        secrets, verdict = host.revealed_secrets, execution.outcome.verdict
        if secrets:
            _hide_from_next_attempt(claimed, event, execution.row)
        return EndedRun(
            claimed,
            run,
            _columns(execution, run, has_secrets=bool(secrets)),
            pushed=[
                row for each in host.effects() if isinstance(each, PushedRuns) for row in each.rows
            ],
            is_final=_is_final(spec, execution.outcome),
            retry_after_seconds=verdict.after_seconds if isinstance(verdict, Retry) else None,
        )


def _spec(run: Run, claimed: Claimed) -> QueuedAttempt:
    script: Script = claimed.entry.script
    spec = QueuedAttempt.of_script(
        script,
        trigger=Trigger(run.trigger),
        hook_id=run.hook_id,
        attempt=claimed.entry.attempt,
        first_run_id=run.first_attempt_id,
        scheduled_at=run.scheduled_at,
        chain_depth=run.chain_depth or 0,
        is_of_alert=bool(run.is_of_alert),
    )
    return pinned_to(spec, pinned_version_of(claimed.entry))


def _event(run: Run, claimed: Claimed) -> Event | None:
    """The call, or ``None`` if its payload is gone."""
    payload_of: uuid.UUID = claimed.entry.payload_of
    first = run if payload_of == run.pk else Run.objects.filter(pk=payload_of).first()
    if first is None or first.payload_removed_at is not None:
        return None
    hidden = claimed.entry.hidden_ciphertext
    try:
        return event_of_queued(first, None if hidden is None else bytes(hidden))
    except DecryptionError:
        logger.exception("Run %s: the hidden parts of its call cannot be opened", run.pk)
        return None


def _not_runnable(run: Run, spec: QueuedAttempt, claimed: Claimed) -> EndedRun:
    """Without its payload, no attempt can succeed."""
    message = "The payload cannot be read any more, so the script did not run."
    columns: dict[str, Any] = {
        "status": RunStatus.FAILED.value,
        "script_version_id": spec.version_id,
        "response_status": 500,
        "error_message": message,
        "payload_bytes": run.payload_bytes,
    }
    return EndedRun(claimed, run, columns, is_final=True)


def _columns(execution: Execution, run: Run, *, has_secrets: bool) -> dict[str, Any]:
    row = dict(execution.row)
    if run.first_run_id is not None:
        # The payload stands in the first attempt.
        row["request_body"] = b""
    sized = measured(row)
    return {name: sized[name] for name in (_OUTCOME + _CALL if has_secrets else _OUTCOME)}


def _hide_from_next_attempt(claimed: Claimed, event: Event, row: Row) -> None:
    """Redacts query and headers in memory, so that the next attempt's record hides them too.

    The entry's ``hidden_ciphertext`` keeps the originals for its script; ``finish`` copies both
    into the next attempt.
    """
    run, entry = claimed.entry.run, claimed.entry
    run.request_query, run.request_path = row["request_query"], row["request_path"]
    run.request_headers = row["request_headers"]
    if run.first_run_id is None:
        # Later attempts read the call from this record, so what it hides now must be kept for them.
        recorded = {**row, "request_body": bytes(run.request_body)}
        entry.hidden_ciphertext = seal_hidden_parts(event, recorded, run.pk)


def _is_final(spec: QueuedAttempt, outcome: Outcome) -> bool:
    """Whether another attempt would fail in the same way: the script says so, it ran out of memory,
    or its source does not compile.
    """
    if outcome.verdict is not None:
        return isinstance(outcome.verdict, Fail)
    if outcome.kind is OutcomeKind.OUT_OF_MEMORY:
        return True
    error = outcome.error
    if outcome.kind is not OutcomeKind.FAILED or error is None or error.traceback:
        return False
    return error.line is not None and _does_not_compile(spec)


def _does_not_compile(spec: QueuedAttempt) -> bool:
    organisation = str(spec.organisation_id)
    try:
        error = sandbox_pool().check_syntax(organisation, spec.source, spec.script_name)
    except (SandboxBusy, SandboxUnavailable):
        # Nobody knows, and another attempt will tell.
        return False
    # A check whose process dies names no line.
    return error is not None and error.line is not None

"""Runs what a runner has claimed, in one of its threads."""

import logging
import uuid
from typing import Any

from core.encryption import DecryptionError
from core.logs.bound import binding
from core.metrics.catalogue import QUEUE_WAIT
from scripts_engine.event import Event
from scripts_engine.flows.queue.claim import Claimed
from scripts_engine.flows.queue.enqueue import pushed_rows
from scripts_engine.flows.queue.finish import Ended
from scripts_engine.flows.queue.hidden_parts import event_of_queued, seal_hidden_parts
from scripts_engine.flows.record_run import Row
from scripts_engine.flows.run_payloads import measured
from scripts_engine.flows.run_script import Execution, execute, pushing_run
from scripts_engine.flows.run_spec import RunSpec
from scripts_engine.host.handler import RunHost
from scripts_engine.models import Run, RunStatus, Script, Trigger
from scripts_engine.sandbox.contract import Fail, Outcome, OutcomeKind, Retry
from scripts_engine.sandbox.parent.pool import SandboxBusy, SandboxUnavailable
from scripts_engine.sandbox_pool import sandbox_pool

logger = logging.getLogger(__name__)

# What a run gains by its end. The rest was recorded when it was queued.
_OUTCOME = (
    "status",
    "started_at",
    "queued_ms",
    "duration_ms",
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
_CALL = ("request_query", "request_headers")


def perform(claimed: Claimed) -> Ended:
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
        host = RunHost(run.organisation_id, pushing=pushing_run(spec, run.pk))
        execution = execute(spec, event, host, run.pk)
        if execution.outcome.kind is not OutcomeKind.SUCCEEDED:
            host.free_keys()
        secrets, verdict = host.revealed_secrets, execution.outcome.verdict
        if secrets:
            _hide_from_next_attempt(claimed, event, execution.row)
        return Ended(
            claimed,
            run,
            _columns(execution, run, has_secrets=bool(secrets)),
            pushed=pushed_rows(host.pushes, by=spec, run_id=run.pk, secrets=secrets),
            is_final=_is_final(spec, execution.outcome),
            retry_after_seconds=verdict.after_seconds if isinstance(verdict, Retry) else None,
        )


def _spec(run: Run, claimed: Claimed) -> RunSpec:
    script: Script = claimed.entry.script
    spec = RunSpec.of_script(script, trigger=Trigger(run.trigger), hook_id=run.hook_id)
    return spec._replace(
        attempt=claimed.entry.attempt,
        first_run_id=run.first_attempt_id,
        scheduled_at=run.scheduled_at,
        chain_depth=run.chain_depth or 0,
    )


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


def _not_runnable(run: Run, spec: RunSpec, claimed: Claimed) -> Ended:
    """Without its payload, no attempt can succeed."""
    message = "The payload cannot be read any more, so the script did not run."
    columns: dict[str, Any] = {
        "status": RunStatus.FAILED.value,
        "script_version_id": spec.version_id,
        "response_status": 500,
        "error_message": message,
        "payload_bytes": run.payload_bytes,
    }
    return Ended(claimed, run, columns, is_final=True)


def _columns(execution: Execution, run: Run, *, has_secrets: bool) -> dict[str, Any]:
    row = dict(execution.row)
    if run.first_run_id is not None:
        # The payload stands in the first attempt.
        row["request_body"] = b""
    sized = measured(row)
    return {name: sized[name] for name in (_OUTCOME + _CALL if has_secrets else _OUTCOME)}


def _hide_from_next_attempt(claimed: Claimed, event: Event, row: Row) -> None:
    """Lets the next attempt's record hide what this one's does, and its script get it all the same.

    In memory only: what follows from an attempt is made of its run and its entry.
    """
    run, entry = claimed.entry.run, claimed.entry
    run.request_query, run.request_headers = row["request_query"], row["request_headers"]
    if run.first_run_id is None:
        # Later attempts read the call from this record, so what it hides now must be kept for them.
        recorded = {**row, "request_body": bytes(run.request_body)}
        entry.hidden_ciphertext = seal_hidden_parts(event, recorded, run.pk)


def _is_final(spec: RunSpec, outcome: Outcome) -> bool:
    """Whether another attempt would fail in the same way: the script says so, or it ran out of
    memory, or it is no Lua program.
    """
    if outcome.verdict is not None:
        return isinstance(outcome.verdict, Fail)
    if outcome.kind is OutcomeKind.OUT_OF_MEMORY:
        return True
    error = outcome.error
    if outcome.kind is not OutcomeKind.FAILED or error is None or error.traceback:
        return False
    return error.line is not None and _does_not_compile(spec)


def _does_not_compile(spec: RunSpec) -> bool:
    source = spec.source.encode()
    try:
        error = sandbox_pool().check_syntax(str(spec.organisation_id), source, spec.script_name)
    except (SandboxBusy, SandboxUnavailable):
        # Nobody knows, and another attempt will tell.
        return False
    # A check whose process dies names no line.
    return error is not None and error.line is not None

"""Runs a script: one execution in a sandbox, and one ``Run`` committed before the reply."""

import uuid
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

from uuid_utils.compat import uuid7

from core.database.unavailable import DatabaseUnavailable
from core.green_threads import in_thread
from core.logs.bound import bind
from core.metrics.catalogue import count_run
from scripts_engine.event import Event
from scripts_engine.flows.queue.enqueue import pushed_rows, record_pushed
from scripts_engine.flows.queue.keys import KeyTakenError
from scripts_engine.flows.record_run import Row, RunNotRecordedError, record_run, record_together
from scripts_engine.flows.run_payloads import measured, without_reply
from scripts_engine.flows.run_rows import STATUS_OF, run_params, run_row
from scripts_engine.flows.run_spec import RunSpec
from scripts_engine.host.handler import RunHost
from scripts_engine.host.queue import PushingRun
from scripts_engine.host.unrecorded import UnrecordedHost
from scripts_engine.models import Run, Trigger
from scripts_engine.redaction import Redactor
from scripts_engine.sandbox.contract import Job, Outcome, OutcomeKind, ScriptError
from scripts_engine.sandbox.limits import Limits
from scripts_engine.sandbox_pool import sandbox_pool

# A person waits for these, and gets to know the line at which time ran out.
_BY_A_PERSON = frozenset({Trigger.ADMIN, Trigger.ADMIN_GRAPHQL})


class FinishedRun(NamedTuple):
    run_id: uuid.UUID
    outcome: Outcome


class Execution(NamedTuple):
    """A run that is not recorded yet, and its columns but their sizes."""

    run_id: uuid.UUID
    outcome: Outcome
    row: Row


def run_script(
    spec: RunSpec,
    event: Event,
    *,
    run_id: uuid.UUID | None = None,
    note_altered_reply: Callable[[], object] | None = None,
) -> FinishedRun:
    """Runs the source with the event as its payload, and returns once the run is committed.

    ``run_id`` is the new run's id, by default a new one. ``note_altered_reply`` is called before
    the run is recorded if its record does not have the reply as the script gave it.

    Raises ``SandboxBusy`` or ``SandboxUnavailable`` if nothing ran: then there is no run. Raises
    ``RunNotRecordedError`` if the script ran but its run could not be stored.
    """
    run_id = run_id or uuid7()
    host = RunHost(spec.organisation_id, pushing=pushing_run(spec, run_id))
    execution = execute(spec, event, host, run_id)
    try:
        outcome = _record(execution, spec, host, note_altered_reply)
    except BaseException:
        host.free_keys()
        raise
    if outcome.kind is not OutcomeKind.SUCCEEDED:
        host.free_keys()
    return FinishedRun(run_id, outcome)


def _record(
    execution: Execution,
    spec: RunSpec,
    host: RunHost,
    note_altered_reply: Callable[[], object] | None,
) -> Outcome:
    """Commits the run with what its script has pushed. Returns how it ended."""
    run_id, outcome, row = execution
    if note_altered_reply is not None and _is_reply_altered(outcome, row):
        try:
            note_altered_reply()
        except DatabaseUnavailable as error:
            raise RunNotRecordedError(f"run {run_id}: {error}") from error
    measured_row = measured(row)
    if not host.pushes or outcome.kind is not OutcomeKind.SUCCEEDED:
        record_run(measured_row)
        return outcome
    pushed = pushed_rows(host.pushes, by=spec, run_id=run_id, secrets=host.revealed_secrets)
    size = sum(each.run["payload_bytes"] for each in pushed)
    try:
        record_together(measured_row, partial(record_pushed, pushed), size=size)
    except KeyTakenError as error:
        record_run(without_reply(measured_row, str(error)))
        failure = ScriptError(str(error))
        return outcome._replace(kind=OutcomeKind.FAILED, reply=None, error=failure)
    return outcome


def run_unrecorded(spec: RunSpec, event: Event) -> Run:
    """Runs the source without store, queue and secrets, and returns a ``Run`` that is not saved.

    Raises ``SandboxBusy`` or ``SandboxUnavailable`` if nothing ran.
    """
    return Run(**execute(spec, event, UnrecordedHost(spec.organisation_id), uuid7()).row)


def pushing_run(spec: RunSpec, run_id: uuid.UUID) -> PushingRun | None:
    """What lets the run's script push; ``None`` if the script is not saved."""
    if spec.script_id is None:
        return None
    return PushingRun(run_id, spec.script_id, spec.chain_depth)


def _is_reply_altered(outcome: Outcome, row: Row) -> bool:
    """Whether a secret is hidden in the recorded reply, or it is truncated."""
    if outcome.reply is None:
        return False
    headers = [list(header) for header in outcome.reply.headers]
    return row["response_body"] != outcome.reply.body or row["response_headers"] != headers


def execute(
    spec: RunSpec, event: Event, host: RunHost | UnrecordedHost, run_id: uuid.UUID
) -> Execution:
    bind(run=run_id)
    job = Job(
        source=spec.source.encode(),
        chunk_name=spec.script_name,
        params=run_params(spec, event, run_id),
        headers=[
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in event.headers
        ],
        limits=_limits(spec.timeout_seconds),
        trace_lines=spec.trigger in _BY_A_PERSON,
    )
    outcome = sandbox_pool().run(str(spec.organisation_id), job, host)
    _count(spec.trigger, outcome)
    redactor = Redactor(host.revealed_secrets)
    row = partial(run_row, spec, event, run_id, outcome, redactor)
    # Searching a large reply for many secrets may take a tenth of a second.
    return Execution(run_id, outcome, in_thread(row) if host.revealed_secrets else row())


@lru_cache(maxsize=64)
def _limits(wall_seconds: float) -> Limits:
    return Limits(wall_seconds=wall_seconds)


def _count(trigger: Trigger, outcome: Outcome) -> None:
    count_run(
        STATUS_OF[outcome.kind], trigger.value, outcome.duration_seconds, outcome.queue_seconds
    )

"""Runs scripts: one execution in a sandbox, and one ``Run`` committed before the reply."""

import logging
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import NamedTuple

from django.core.exceptions import ValidationError
from uuid_utils.compat import uuid7

from accounts.models import Organisation
from core.database.unavailable import DatabaseUnavailable
from core.errors import NotFoundError
from core.http.redaction import REDACTED
from core.logs.context import bind
from core.metrics.instruments import Counter, Histogram
from core.waiting import in_thread
from scripts_engine.host.capabilities import EffectRefusedError
from scripts_engine.host.handler import RunHost, UnrecordedHost
from scripts_engine.libraries import has_pins, refuse_library, resolve
from scripts_engine.metrics import RUN_DURATION, RUN_QUEUE, RUNS
from scripts_engine.models import Run, Script, ScriptVersion, Trigger
from scripts_engine.programs import Program, freeze, program_of, program_of_source
from scripts_engine.redaction import Redactor
from scripts_engine.runs.problems import OrganisationInactiveError
from scripts_engine.runs.recording import RunNotRecordedError, record_run, record_together
from scripts_engine.runs.rows import STATUS_OF, Row, measured, run_row, without_reply
from scripts_engine.runs.spec import (
    NOBODY,
    Author,
    Event,
    SavedRun,
    TryOut,
    draft_owner,
    run_params,
)
from scripts_engine.sandbox import Job, Limits, Outcome, OutcomeKind, ScriptError
from scripts_engine.sandbox_pool import sandbox_pool

logger = logging.getLogger(__name__)

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
    spec: SavedRun,
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
    host = RunHost(spec.organisation_id, recorded=spec.recorded(run_id))
    execution = execute(spec, event, host, run_id)
    try:
        outcome = _record(execution, host, note_altered_reply)
    except BaseException:
        host.abandon()
        raise
    if outcome.kind is not OutcomeKind.SUCCEEDED:
        host.abandon()
    return FinishedRun(run_id, outcome)


def _record(
    execution: Execution,
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
    effects = host.effects() if outcome.kind is OutcomeKind.SUCCEEDED else []
    if not effects:
        record_run(measured_row)
        return outcome
    size = sum(effect.size_bytes for effect in effects)
    try:
        record_together(measured_row, [effect.store for effect in effects], size=size)
    except EffectRefusedError as error:
        record_run(without_reply(measured_row, str(error)))
        failure = ScriptError(str(error))
        return outcome._replace(kind=OutcomeKind.FAILED, reply=None, error=failure)
    return outcome


def run_unrecorded(spec: TryOut, event: Event) -> Run:
    """Runs the source without store, queue and secrets, and returns a ``Run`` that is not saved.

    Raises ``SandboxBusy`` or ``SandboxUnavailable`` if nothing ran.
    """
    return Run(**execute(spec, event, UnrecordedHost(spec.organisation_id), uuid7()).row)


def _is_reply_altered(outcome: Outcome, row: Row) -> bool:
    """Whether a secret is hidden in the recorded reply, or it is truncated."""
    if outcome.reply is None:
        return False
    headers = [list(header) for header in outcome.reply.headers]
    return row["response_body"] != outcome.reply.body or row["response_headers"] != headers


def execute(
    spec: SavedRun | TryOut, event: Event, host: RunHost | UnrecordedHost, run_id: uuid.UUID
) -> Execution:
    bind(run=run_id)
    job = Job(
        source=spec.source,
        libraries=spec.libraries,
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
    runs, run_duration = _metrics_of(STATUS_OF[outcome.kind], trigger.value)
    runs.inc()
    run_duration.observe(outcome.duration_seconds)
    RUN_QUEUE.observe(outcome.queue_seconds)


@cache
def _metrics_of(status: str, trigger: str) -> tuple[Counter, Histogram]:
    return RUNS.labels(status, trigger), RUN_DURATION.labels(trigger)


def try_script(
    script: Script,
    *,
    event: Event,
    author: Author,
    trigger: Trigger,
    source: str | None = None,
    version: ScriptVersion | None = None,
    is_of_alert: bool = False,
) -> Run:
    """Runs the script for a person or a program, even if it is disabled.

    In place of the live version, ``version`` of the script runs, or ``source``, without being
    saved; a source that is the live one, or the author's draft, runs as that version. If nothing
    ran, raises ``ValidationError`` for a library, and if neither is given and no version is live,
    ``SourceError`` for a library that the source cannot require, ``OrganisationInactiveError``,
    ``NotFoundError``, ``SandboxBusy`` or ``SandboxUnavailable``.
    """
    if not script.organisation.is_active:
        raise OrganisationInactiveError
    refuse_library(script)
    if source is None and version is None and script.current_version_id is None:
        message = "The script has no live version. Choose a version, or give a source."
        raise ValidationError({"version": ValidationError(message, code="invalid")})
    spec = SavedRun.of_script(script, trigger=trigger, started_by=author, is_of_alert=is_of_alert)
    if version is None and source is not None and source != script.source:
        version = _unchanged_draft(script, source, author)
        if version is None:
            program = program_of_source(
                script.organisation, source, script=script, draft_of=_drafts_of(author)
            )
            spec = replace(spec, version_id=None, is_draft=True, **program._asdict())
    if version is not None:
        program, is_draft = _to_run(version), version.published_at is None
        spec = replace(spec, version_id=version.pk, is_draft=is_draft, **program._asdict())
    return Run.objects.get(pk=run_script(spec, event).run_id)


def _drafts_of(author: Author) -> str:
    """Whose drafts of libraries a source may require."""
    return "" if author == NOBODY else draft_owner(author)


def _unchanged_draft(script: Script, source: str, author: Author) -> ScriptVersion | None:
    """The author's draft, if it has the source and would be saved with the same libraries."""
    owner = _drafts_of(author)
    draft = script.versions.drafts().filter(draft_of=owner).first()
    if draft is None or draft.source != source:
        return None
    pins = resolve(script.organisation, source, script=script, draft_of=owner)
    if not has_pins(draft, pins):
        return None
    # Another window may have changed it meanwhile.
    return draft if _to_run(draft).source == source.encode() else None


def _to_run(version: ScriptVersion) -> Program:
    """The program, which does not change from now on, even if the version is a draft."""
    freeze(version.pk)
    try:
        return program_of(version.pk)
    except ScriptVersion.DoesNotExist:
        raise NotFoundError("There is no such version.") from None


def try_new_script(organisation: Organisation, *, event: Event, author: Author, source: str) -> Run:
    """Runs the source of a script that is not saved yet. Nothing is stored.

    A recorded run belongs to a script, so this one is not recorded: its ``Run`` is not saved, and
    the source gets neither store nor secrets. Raises ``SourceError`` and the errors of
    ``try_script``.
    """
    if not organisation.is_active:
        raise OrganisationInactiveError
    program = program_of_source(organisation, source, draft_of=_drafts_of(author))
    spec = TryOut(organisation_id=organisation.pk, started_by=author, **program._asdict())
    run = run_unrecorded(spec, event)
    logger.info(
        "Tried a script that is not saved: organisation %s, user %s, %s, %d host calls",
        organisation.pk,
        None if author.user is None else author.user.pk,
        run.status,
        len(run.host_calls),
    )
    return run


def run_again(run: Run, *, author: Author, client_address: str) -> Run:
    """Runs the script's current version with the payload of an earlier run.

    The client address is that of the new caller, and redacted headers are left out. Raises the
    same errors as ``try_script``; then there is no new run.
    """
    payload = run.payload_run()
    event = Event(
        method=run.request_method,
        query=run.request_query,
        path=run.request_path,
        headers=tuple((name, value) for name, value in run.request_headers if value != REDACTED),
        body=b"" if payload is None else bytes(payload.request_body),
        client_address=client_address,
    )
    return try_script(
        run.script,
        event=event,
        author=author,
        trigger=Trigger.ADMIN,
        is_of_alert=bool(run.is_of_alert),
    )


def headers_left_out(run: Run) -> list[str]:
    """Names of the run's headers whose values were redacted, so that they cannot be sent again."""
    return [name for name, value in run.request_headers if value == REDACTED]

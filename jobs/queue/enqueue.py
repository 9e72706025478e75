"""Puts work into the queue: a run, and what the queue knows of it, in one transaction."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from uuid_utils.compat import uuid7

from core.database.compiled_query import CompiledInsert
from jobs.models import QueueEntry
from jobs.models.queue import key_digest
from jobs.queue.deduplication import KeyTakenError, claim_key
from jobs.queue.hidden_parts import seal_hidden_parts
from jobs.queue.queue_limit import check_queue_limit
from jobs.queue.wake_up import wake_runners
from scripts_engine.libraries import refuse_library
from scripts_engine.models import Script, Trigger
from scripts_engine.redaction import Redactor
from scripts_engine.runs.recording import Companion, record_queued
from scripts_engine.runs.rows import Row, measured, queued_row
from scripts_engine.runs.spec import Author, Event, RunOrigin

MAX_KEY_CHARACTERS = 200
MAX_DELAY_SECONDS = 30 * 86_400

_insert_entry = CompiledInsert(QueueEntry)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedWork(RunOrigin):
    """What to run later, for whom and why.

    The version is the one that would run now; the one that is live when the run starts, or that
    its caller is pinned to then, is what runs.
    """

    event: Event
    max_attempts: int | None = None
    """``None``: ``QUEUE_MAX_ATTEMPTS``."""
    delay_seconds: float = 0.0
    response_status: int = 202
    schedule_id: uuid.UUID | None = None
    scheduled_at: datetime | None = None
    pushed_by_id: uuid.UUID | None = None
    chain_depth: int = 0
    replay_of_id: uuid.UUID | None = None
    hidden_secrets: frozenset[bytes] = frozenset()
    """Secrets that the record of the payload hides."""


class QueuedRows(NamedTuple):
    """The columns of a queued run and of its entry."""

    run: Row
    entry: Row
    key: str = ""
    """Under which the run is queued; empty if there is none."""


def enqueue(work: QueuedWork, *, run_id: uuid.UUID | None = None, key: str = "") -> uuid.UUID:
    """Queues the work, in the caller's transaction if there is one. Returns the run's id.

    A ``key`` finds the run that was queued for the script with it within ``KEY_WINDOW``, and then
    nothing is queued. Raises ``QueueFullError``.
    """
    run_id = run_id or uuid7()
    check_queue_limit(work.organisation_id)
    if not key:
        _record(queued_rows(work, run_id))
        return run_id
    with transaction.atomic():
        owner = claim_key(work.organisation_id, work.script_id, key, run_id)
        if owner != run_id:
            return owner
        _record(queued_rows(work, run_id))
    return run_id


def enqueue_all(works: Iterable[QueuedWork]) -> list[uuid.UUID]:
    """Queues all or nothing. Raises ``QueueFullError``."""
    rows = [queued_rows(work, uuid7()) for work in works]
    with transaction.atomic():
        for organisation_id in {each.run["organisation_id"] for each in rows}:
            number = sum(each.run["organisation_id"] == organisation_id for each in rows)
            check_queue_limit(organisation_id, number)
        for each in rows:
            _record(each)
    return [each.run["id"] for each in rows]


def _record(rows: QueuedRows) -> None:
    record_queued(rows.run, Companion(_insert_entry, rows.entry))
    transaction.on_commit(wake_runners)


def queued_rows(work: QueuedWork, run_id: uuid.UUID) -> QueuedRows:
    """The rows to insert, with the sizes of the run's payload."""
    redactor = Redactor(work.hidden_secrets)
    run = {
        **queued_row(
            work, work.event, run_id, response_status=work.response_status, redactor=redactor
        ),
        "schedule_id": work.schedule_id,
        "scheduled_at": work.scheduled_at,
        "chain_depth": work.chain_depth,
        "pushed_by_id": work.pushed_by_id,
        "replay_of_id": work.replay_of_id,
    }
    if work.hidden_secrets:
        run["request_body"] = redactor.bytes(run["request_body"], len(run["request_body"]))
    hidden = seal_hidden_parts(work.event, run, run_id)
    due_at = run["started_at"] + timedelta(seconds=work.delay_seconds)
    entry = entry_row(
        run,
        payload_of=run_id,
        due_at=due_at,
        max_attempts=work.max_attempts or settings.QUEUE_MAX_ATTEMPTS,
        hidden_ciphertext=hidden,
    )
    return QueuedRows(measured(run), entry)


def entry_row(
    run: Row,
    *,
    payload_of: uuid.UUID,
    due_at: datetime,
    max_attempts: int,
    hidden_ciphertext: bytes | None,
) -> Row:
    """The entry of a queued run that no runner has taken."""
    return {
        "run_id": run["id"],
        "organisation_id": run["organisation_id"],
        "script_id": run["script_id"],
        "hook_id": run["hook_id"],
        "schedule_id": run["schedule_id"],
        "payload_of": payload_of,
        "due_at": due_at,
        "attempt": run["attempt"],
        "max_attempts": max_attempts,
        "hidden_ciphertext": hidden_ciphertext,
        "lease_id": None,
        "lease_ends_at": None,
    }


def record_all(rows: Iterable[QueuedRows]) -> None:
    """Inserts the rows in the caller's transaction, and wakes runners after it."""
    for each in rows:
        _record(each)


def take_keys(pushed: Sequence[QueuedRows]) -> None:
    """Takes the keys of what a run has pushed, or none and raises ``KeyTakenError``.

    Call it in the transaction that records the run as succeeded.
    """
    # Keys in one order everywhere, or two transactions could wait for each other's.
    keyed = sorted((each for each in pushed if each.key), key=digest_of)
    if not keyed:
        return
    with transaction.atomic():
        for each in keyed:
            run = each.run
            owner = claim_key(run["organisation_id"], run["script_id"], each.key, run["id"])
            if owner != run["id"]:
                raise KeyTakenError


def digest_of(rows: QueuedRows) -> str:
    """The digest of the key, under which it is stored."""
    return key_digest(rows.run["script_id"], rows.key)


def request_run(
    script: Script,
    *,
    event: Event,
    author: Author,
    delay_seconds: int = 0,
    key: str | None = None,
) -> uuid.UUID:
    """Queues a run of the script, due after the delay of at most 30 days.

    A ``key`` that queued a run of the script within 24 hours finds that run. Raises
    ``ValidationError`` by field, or ``QueueFullError``.
    """
    refuse_library(script)
    if not 0 <= delay_seconds <= MAX_DELAY_SECONDS:
        raise invalid("delay_seconds", f"Enter 0 to {MAX_DELAY_SECONDS:,} seconds.")
    if key is not None and not 1 <= len(key) <= MAX_KEY_CHARACTERS:
        raise invalid("key", f"Enter 1 to {MAX_KEY_CHARACTERS} characters.")
    work = QueuedWork(
        organisation_id=script.organisation_id,
        script_id=script.pk,
        version_id=script.current_version_id,
        event=event,
        trigger=Trigger.QUEUE,
        started_by=author,
        delay_seconds=delay_seconds,
    )
    return enqueue(work, key=key or "")


def invalid(field: str, message: str) -> ValidationError:
    return ValidationError({field: ValidationError(message, code="invalid")})

"""Puts work into the queue: a run, and what the queue knows of it, in one transaction."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from django.conf import settings
from django.db import transaction
from uuid_utils.compat import uuid7

from core.green_threads import in_thread
from scripts_engine.event import Event
from scripts_engine.flows.author import NOBODY, Author
from scripts_engine.flows.queue.hidden_parts import seal_hidden_parts
from scripts_engine.flows.queue.keys import KeyTakenError, claim_key
from scripts_engine.flows.queue.room import check_room
from scripts_engine.flows.queue.wake_up import wake_runners
from scripts_engine.flows.record_run import Row, record_queued
from scripts_engine.flows.run_payloads import measured
from scripts_engine.flows.run_rows import queued_row
from scripts_engine.flows.run_spec import RunSpec
from scripts_engine.host.queue import Push
from scripts_engine.models import Trigger
from scripts_engine.models.queue_entry import key_digest
from scripts_engine.redaction import Redactor

MAX_KEY_CHARACTERS = 200
MAX_DELAY_SECONDS = 30 * 86_400


@dataclass(frozen=True, slots=True)
class QueuedWork:
    """What to run later, for whom and why."""

    organisation_id: uuid.UUID
    script_id: uuid.UUID
    version_id: uuid.UUID | None
    """The current version; the one that is current when the run starts is what runs."""
    event: Event
    trigger: Trigger
    hook_id: uuid.UUID | None = None
    started_by: Author = NOBODY
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


class Enqueued(NamedTuple):
    run_id: uuid.UUID
    is_new: bool


def enqueue(work: QueuedWork, *, run_id: uuid.UUID | None = None, key: str = "") -> Enqueued:
    """Queues the work, in the caller's transaction if there is one.

    A ``key`` finds the run that was queued for the script with it within ``KEY_WINDOW``, and then
    nothing is queued. Raises ``QueueFullError``.
    """
    run_id = run_id or uuid7()
    check_room(work.organisation_id)
    if not key:
        _record(queued_rows(work, run_id))
        return Enqueued(run_id, is_new=True)
    with transaction.atomic():
        owner = claim_key(work.organisation_id, work.script_id, key, run_id)
        if owner != run_id:
            return Enqueued(owner, is_new=False)
        _record(queued_rows(work, run_id))
    return Enqueued(run_id, is_new=True)


def enqueue_all(works: Iterable[QueuedWork]) -> list[uuid.UUID]:
    """Queues all or nothing. Raises ``QueueFullError``."""
    rows = [queued_rows(work, uuid7()) for work in works]
    with transaction.atomic():
        for organisation_id in {each.run["organisation_id"] for each in rows}:
            number = sum(each.run["organisation_id"] == organisation_id for each in rows)
            check_room(organisation_id, number)
        for each in rows:
            _record(each)
    return [each.run["id"] for each in rows]


def _record(rows: QueuedRows) -> None:
    record_queued(rows.run, rows.entry)
    transaction.on_commit(wake_runners)


def queued_rows(work: QueuedWork, run_id: uuid.UUID) -> QueuedRows:
    """The rows to insert, with the sizes of the run's payload."""
    spec = RunSpec(
        organisation_id=work.organisation_id,
        script_id=work.script_id,
        script_name="",
        timeout_seconds=0,
        version_id=work.version_id,
        source="",
        trigger=work.trigger,
        hook_id=work.hook_id,
        started_by=work.started_by,
        scheduled_at=work.scheduled_at,
        chain_depth=work.chain_depth,
    )
    redactor = Redactor(work.hidden_secrets)
    run = {
        **queued_row(
            spec, work.event, run_id, response_status=work.response_status, redactor=redactor
        ),
        "schedule_id": work.schedule_id,
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


def record_pushed(rows: Sequence[QueuedRows]) -> None:
    """Inserts what a run has pushed, in the caller's transaction. Raises ``KeyTakenError``."""
    take_keys(rows)
    record_all(rows)


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


def pushed_rows(
    pushes: Sequence[Push],
    *,
    by: RunSpec,
    run_id: uuid.UUID,
    secrets: frozenset[bytes],
) -> list[QueuedRows]:
    """The rows of what a run's script has pushed. Their records hide the secrets that it read."""
    make = partial(_pushed_rows, pushes, by, run_id, secrets)
    # To look for secrets in all of it may take tenths of a second.
    return in_thread(make) if secrets and pushes else make()


def _pushed_rows(
    pushes: Sequence[Push], by: RunSpec, run_id: uuid.UUID, secrets: frozenset[bytes]
) -> list[QueuedRows]:
    rows = []
    for push in pushes:
        work = QueuedWork(
            organisation_id=by.organisation_id,
            script_id=push.script_id,
            version_id=push.version_id,
            event=Event("POST", "", (), push.payload, ""),
            trigger=Trigger.QUEUE,
            max_attempts=push.max_attempts,
            delay_seconds=push.delay_seconds,
            pushed_by_id=run_id,
            chain_depth=by.chain_depth + 1,
            hidden_secrets=secrets,
        )
        rows.append(queued_rows(work, push.run_id)._replace(key=push.key))
    return rows

"""Runs a verified call within the limits of its hook, or queues it."""

import uuid
from http import HTTPStatus
from typing import NamedTuple

from scripts_engine.event import Event
from scripts_engine.flows import concurrent_runs, idempotency
from scripts_engine.flows.call_limit import check_call_limit
from scripts_engine.flows.concurrent_runs import RunLimits, run_counted
from scripts_engine.flows.idempotency import (
    FirstDelivery,
    RepeatedReply,
    claim_delivery,
    delivery_digest,
)
from scripts_engine.flows.queue.enqueue import QueuedWork, enqueue
from scripts_engine.flows.rules_of_call import CallRules
from scripts_engine.flows.run_script import FinishedRun, run_script
from scripts_engine.flows.run_spec import RunSpec
from scripts_engine.sandbox.limits import MAX_QUEUE_SECONDS, MAX_WALL_SECONDS

# The time to record a run, with a margin.
RECORD_SECONDS = 15
# From the last byte of a call to the end of its run: it may wait for an equal delivery that fails,
# then for other runs of its hook, and then for a sandbox.
LONGEST_CALL_SECONDS = (
    idempotency.WAIT_SECONDS + concurrent_runs.WAIT_SECONDS + MAX_QUEUE_SECONDS + MAX_WALL_SECONDS
)


class AcceptedCall(NamedTuple):
    """A call whose run is queued. The queue keeps it, whatever happens to this process."""

    run_id: uuid.UUID
    status: int


def run_call(
    spec: RunSpec, hook_id: uuid.UUID, rules: CallRules, event: Event
) -> FinishedRun | RepeatedReply:
    """Runs the hook's script, or returns the reply of the run that the same delivery had.

    Raises what ``run_script`` does, and ``RateLimitedError``, ``DuplicateInProgressError`` or
    ``RunLimitReachedError``: nothing ran.
    """
    delivery = _delivery(spec, hook_id, rules, event)
    if isinstance(delivery, RepeatedReply):
        return delivery
    try:
        return _run_counted(spec, rules, event, delivery)
    except BaseException:
        if delivery is not None:
            delivery.free()
        raise


def accept_call(
    spec: RunSpec, hook_id: uuid.UUID, rules: CallRules | None, event: Event
) -> AcceptedCall | RepeatedReply:
    """Queues a run of the hook's script, and returns once it is committed.

    Returns the reply that an earlier equal delivery got, if there was one. Raises
    ``RateLimitedError``, ``DuplicateInProgressError`` or ``QueueFullError``: nothing is queued.
    """
    if spec.script_id is None:
        raise ValueError("a hook runs a saved script")
    status = HTTPStatus.ACCEPTED if rules is None else rules.accepted_status
    delivery = None if rules is None else _delivery(spec, hook_id, rules, event, status)
    if isinstance(delivery, RepeatedReply):
        return delivery
    work = QueuedWork(
        organisation_id=spec.organisation_id,
        script_id=spec.script_id,
        version_id=spec.version_id,
        event=event,
        trigger=spec.trigger,
        hook_id=hook_id,
        max_attempts=None if rules is None else rules.max_attempts,
        response_status=status,
    )
    try:
        queued = enqueue(work, run_id=None if delivery is None else delivery.run_id)
    except BaseException:
        if delivery is not None:
            delivery.free()
        raise
    return AcceptedCall(queued.run_id, status)


def _delivery(
    spec: RunSpec,
    hook_id: uuid.UUID,
    rules: CallRules,
    event: Event,
    accepted_status: int | None = None,
) -> FirstDelivery | RepeatedReply | None:
    """Checks the call limit and then claims the delivery; ``None`` if it is not recognised."""
    check_call_limit(hook_id, calls_per_minute=rules.calls_per_minute, burst=rules.burst)
    digest = delivery_digest(
        hook_id,
        rules.idempotency,
        event_id=event.event_id,
        content=event.content,
    )
    if digest is None:
        return None
    return claim_delivery(
        hook_id,
        digest,
        organisation_id=spec.organisation_id,
        window_seconds=rules.idempotency_window_seconds,
        lease_seconds=concurrent_runs.WAIT_SECONDS
        + MAX_QUEUE_SECONDS
        + spec.timeout_seconds
        + RECORD_SECONDS,
        accepted_status=accepted_status,
    )


def _run_counted(
    spec: RunSpec, rules: CallRules, event: Event, delivery: FirstDelivery | None
) -> FinishedRun:
    if spec.script_id is None:
        raise ValueError("a hook runs a saved script")
    limits = RunLimits(
        spec.hook_id,
        spec.script_id,
        rules.max_concurrent_runs,
        rules.max_concurrent_runs_of_script,
    )
    run_seconds = MAX_QUEUE_SECONDS + spec.timeout_seconds
    with run_counted(limits, organisation_id=spec.organisation_id, run_seconds=run_seconds):
        if delivery is None:
            return run_script(spec, event)
        return run_script(
            spec, event, run_id=delivery.run_id, note_altered_reply=delivery.note_altered_reply
        )

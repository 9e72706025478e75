"""Runs an accepted call within the limits of its hook, or queues it."""

import uuid
from http import HTTPStatus
from typing import NamedTuple

from accounts.rate_limits.counters import Bucket
from accounts.rate_limits.limiter import hit
from hooks.flows import idempotency
from hooks.flows.find_callable_hook import CallableHook
from hooks.flows.idempotency import (
    FirstDelivery,
    RepeatedReply,
    claim_delivery,
    delivery_digest,
)
from hooks.models import ReplyMode
from hooks.rules import CallRules
from jobs import concurrent_runs
from jobs.concurrent_runs import ConcurrencyLimits, run_counted
from jobs.queue.enqueue import QueuedWork, enqueue
from scripts_engine.runs.execution import FinishedRun, run_script
from scripts_engine.runs.spec import Event
from scripts_engine.sandbox import MAX_QUEUE_SECONDS, MAX_WALL_SECONDS

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


def run_or_queue(
    hook: CallableHook, event: Event, *, prefers_no_wait: bool = False
) -> FinishedRun | AcceptedCall | RepeatedReply:
    """Queues the run if the hook or the caller does not wait for the script.

    Raises what ``run_call`` and ``accept_call`` do.
    """
    rules = hook.rules
    if prefers_no_wait or (rules is not None and rules.reply_mode == ReplyMode.ACCEPTED):
        return accept_call(hook, event)
    return run_script(hook.saved_run(), event) if rules is None else run_call(hook, rules, event)


def run_call(hook: CallableHook, rules: CallRules, event: Event) -> FinishedRun | RepeatedReply:
    """Runs the hook's script, or returns the reply of the run that the same delivery had.

    Raises what ``run_script`` does, and ``RateLimitedError``, ``DuplicateInProgressError`` or
    ``RunLimitReachedError``: nothing ran.
    """
    delivery = _delivery(hook, rules, event)
    if isinstance(delivery, RepeatedReply):
        return delivery
    try:
        return _run_counted(hook, rules, event, delivery)
    except BaseException:
        if delivery is not None:
            delivery.free()
        raise


def accept_call(hook: CallableHook, event: Event) -> AcceptedCall | RepeatedReply:
    """Queues a run of the hook's script, and returns once it is committed.

    Returns the reply that an earlier equal delivery got, if there was one. Raises
    ``RateLimitedError``, ``DuplicateInProgressError`` or ``QueueFullError``: nothing is queued.
    """
    rules = hook.rules
    status = HTTPStatus.ACCEPTED if rules is None else rules.accepted_status
    delivery = None if rules is None else _delivery(hook, rules, event, status)
    if isinstance(delivery, RepeatedReply):
        return delivery
    work = QueuedWork(
        organisation_id=hook.organisation_id,
        script_id=hook.script_id,
        version_id=hook.version_id,
        event=event,
        trigger=hook.trigger,
        hook_id=hook.id,
        max_attempts=None if rules is None else rules.max_attempts,
        response_status=status,
    )
    try:
        run_id = enqueue(work, run_id=None if delivery is None else delivery.run_id)
    except BaseException:
        if delivery is not None:
            delivery.free()
        raise
    return AcceptedCall(run_id, status)


def _delivery(
    hook: CallableHook,
    rules: CallRules,
    event: Event,
    accepted_status: int | None = None,
) -> FirstDelivery | RepeatedReply | None:
    """Checks the call limit and then claims the delivery; ``None`` if it is not recognised."""
    check_call_limit(hook.id, calls_per_minute=rules.calls_per_minute, burst=rules.burst)
    digest = delivery_digest(
        hook.id,
        rules.idempotency,
        event_id=event.event_id,
        content=event.content,
    )
    if digest is None:
        return None
    return claim_delivery(
        hook.id,
        digest,
        organisation_id=hook.organisation_id,
        window_seconds=rules.idempotency_window_seconds,
        lease_seconds=concurrent_runs.WAIT_SECONDS
        + MAX_QUEUE_SECONDS
        + hook.timeout_seconds
        + RECORD_SECONDS,
        accepted_status=accepted_status,
    )


def check_call_limit(hook_id: uuid.UUID, *, calls_per_minute: int | None, burst: int) -> None:
    """Takes a token for one verified call. Raises ``RateLimitedError`` and takes none.

    One token bucket per hook, over all nodes. ``calls_per_minute`` is ``None`` for a hook without a
    limit, which costs nothing; ``burst`` is how many calls may come at once. ``RATE_LIMITS=off``
    switches this limit off too.
    """
    if calls_per_minute is not None:
        hit([Bucket(calls_per_minute, burst)], "hook-calls", str(hook_id))


def _run_counted(
    hook: CallableHook, rules: CallRules, event: Event, delivery: FirstDelivery | None
) -> FinishedRun:
    limits = ConcurrencyLimits(
        hook.id,
        hook.script_id,
        rules.max_concurrent_runs,
        rules.max_concurrent_runs_of_script,
    )
    run_seconds = MAX_QUEUE_SECONDS + hook.timeout_seconds
    with run_counted(limits, organisation_id=hook.organisation_id, run_seconds=run_seconds):
        spec = hook.saved_run()
        if delivery is None:
            return run_script(spec, event)
        return run_script(
            spec, event, run_id=delivery.run_id, note_altered_reply=delivery.note_altered_reply
        )

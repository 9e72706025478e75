"""Periodic maintenance, on one machine or on several concurrently."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from django.conf import settings
from django.contrib.sessions.models import Session as AdminSession
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Length
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from accounts.flows.warn_of_expiry import warn_of_expiry
from accounts.models import AuthEvent, Invitation, PinChallenge, PinFailures, RateWindow, User
from accounts.rate_limits.token_bucket import forget_full_buckets
from core.database.batches import delete_in_batches
from core.database.ids import first_id_at
from core.database.unavailable import DatabaseUnavailable
from scripts_engine.flows.failure_mails import mail_about_failures
from scripts_engine.flows.forget_call_notes import (
    forget_refusal_counts,
    forget_refused_calls,
    forget_retired_secrets,
    forget_unused_tokens,
)
from scripts_engine.flows.forget_definitions import forget_definitions
from scripts_engine.flows.forget_old_runs import forget_old_runs
from scripts_engine.flows.run_quota import settle_run_bytes
from scripts_engine.flows.schedules.schedules import forget_schedules_of_deleted_scripts
from scripts_engine.flows.schedules.ticks import restart_schedules_far_ahead
from scripts_engine.models import IdempotencyKey, QueueKey, RunLease, StoredValue
from sessions_api.models import Session

logger = logging.getLogger(__name__)


def end_expired_sessions() -> int:
    """Delete expired sessions by ``expires_at``, which is indexed; few sessions have expired."""
    expired = Session.objects.filter(expires_at__lte=timezone.now())
    return delete_in_batches(expired, order=("expires_at",))


def forget_old_challenges() -> int:
    """Delete challenges, with the digests of their codes, a day after the last code expired."""
    day_ago = timezone.now() - timedelta(days=1)
    return delete_in_batches(PinChallenge.objects.filter(expires_at__lte=day_ago))


def forget_expired_invitations() -> int:
    return delete_in_batches(Invitation.objects.expired(), order=("expires_at",))


def forget_closed_windows() -> int:
    return delete_in_batches(RateWindow.objects.ended())


def forget_expired_deliveries() -> int:
    expired = IdempotencyKey.objects.expired()
    return delete_in_batches(expired, order=("expires_at",))


def forget_ended_leases() -> int:
    return delete_in_batches(RunLease.objects.ended())


def forget_expired_queue_keys() -> int:
    return delete_in_batches(QueueKey.objects.expired(), order=("expires_at",))


def forget_expired_values() -> int:
    return delete_in_batches(StoredValue.objects.expired(), row_bytes=Length("value"))


def forget_old_failures() -> int:
    """Delete counters that lock nobody: every address for which a PIN is requested has one."""
    day_ago = timezone.now() - timedelta(days=1)
    idle = PinFailures.objects.filter(day_started_at__lte=day_ago)
    unknown = ~Exists(User.objects.filter(email=OuterRef("email")))
    open_challenge = Exists(PinChallenge.objects.filter(email=OuterRef("email")))
    return delete_in_batches(idle.filter(~open_challenge, unknown | Q(consecutive_failures=0)))


def forget_admin_sessions() -> int:
    return delete_in_batches(AdminSession.objects.filter(expire_date__lte=timezone.now()))


def forget_old_events() -> int:
    """Delete by UUIDv7 id, which is time-ordered and indexed; ``at`` is not."""
    end = first_id_at(timezone.now() - settings.AUTH_EVENTS_KEPT)
    return delete_in_batches(AuthEvent.objects.filter(pk__lt=end))


def forget_finished_tasks() -> int:
    """Delete finished tasks, since their arguments contain e-mail addresses."""
    now = timezone.now()
    succeeded = Q(status="SUCCESSFUL", finished_at__lte=now - settings.TASKS_KEPT)
    failed = Q(status="FAILED", finished_at__lte=now - settings.FAILED_TASKS_KEPT)
    return delete_in_batches(DBTaskResult.objects.filter(succeeded | failed))


Duties = tuple[Callable[[], int], ...]

MINUTELY: Duties = (mail_about_failures,)
DUTIES: Duties = (
    *MINUTELY,
    warn_of_expiry,
    end_expired_sessions,
    forget_old_challenges,
    forget_expired_invitations,
    forget_closed_windows,
    forget_full_buckets,
    forget_expired_deliveries,
    forget_ended_leases,
    forget_expired_queue_keys,
    forget_expired_values,
    forget_old_failures,
    forget_admin_sessions,
    forget_old_events,
    forget_finished_tasks,
    forget_refused_calls,
    # After forget_refused_calls: the secrets are what is hidden on the pages of these calls.
    forget_retired_secrets,
    forget_unused_tokens,
    forget_refusal_counts,
    forget_schedules_of_deleted_scripts,
    restart_schedules_far_ahead,
    forget_old_runs,
    # After forget_old_runs, so that deleted runs keep no version, and are not counted.
    forget_definitions,
    settle_run_bytes,
)


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The result of one round: rows by duty, and the duties that failed."""

    done: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)


def do_upkeep(duties: Duties | None = None) -> Upkeep:
    """Run every duty, or those given, even if one fails."""
    upkeep = Upkeep()
    for duty in DUTIES if duties is None else duties:
        name = duty.__name__
        try:
            count = duty()
        except DatabaseUnavailable as error:
            logger.error("Upkeep: %s failed: %s", name, " ".join(str(error).split()))  # noqa: TRY400
            upkeep.failed.append(name)
        except Exception:
            logger.exception("Upkeep: %s failed", name)
            upkeep.failed.append(name)
        else:
            upkeep.done[name] = count
            if count:
                logger.info("Upkeep: %s: %d", name, count)
    return upkeep

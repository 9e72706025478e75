"""What is done from time to time, on any one machine or on several at once."""

import logging
from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.core.management import call_command
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from accounts.flows.warn_of_expiry import warn_of_expiry
from accounts.models import AuthEvent, PinChallenge, PinFailures, RateWindow, User
from config.batches import delete_in_batches
from scripts_engine.models import StoredValue
from sessions_api.models import Session

logger = logging.getLogger(__name__)


def end_expired_sessions() -> int:
    return delete_in_batches(Session.objects.filter(expires_at__lte=timezone.now()))


def forget_old_challenges() -> int:
    """Challenges, and with them the digests of their codes, a day after their last code ended."""
    day_ago = timezone.now() - timedelta(days=1)
    return delete_in_batches(PinChallenge.objects.filter(expires_at__lte=day_ago))


def forget_closed_windows() -> int:
    return delete_in_batches(RateWindow.objects.over())


def forget_expired_values() -> int:
    return delete_in_batches(StoredValue.objects.expired())


def forget_old_failures() -> int:
    """Counts of failed PINs that stop nobody: a row for each address that anybody asks for."""
    day_ago = timezone.now() - timedelta(days=1)
    idle = PinFailures.objects.filter(day_started_at__lte=day_ago)
    unknown = ~Exists(User.objects.filter(email=OuterRef("email")))
    open_challenge = Exists(PinChallenge.objects.filter(email=OuterRef("email")))
    return delete_in_batches(idle.filter(~open_challenge, unknown | Q(consecutive_failures=0)))


def forget_admin_sessions() -> int:
    call_command("clearsessions")
    return 0


def forget_old_events() -> int:
    oldest = timezone.now() - settings.AUTH_EVENTS_KEPT
    return delete_in_batches(AuthEvent.objects.filter(at__lte=oldest))


def forget_finished_tasks() -> int:
    """Their arguments hold e-mail addresses."""
    call_command("prune_db_task_results", min_age_days=1, failed_min_age_days=14, verbosity=0)
    return 0


DUTIES: tuple[Callable[[], int], ...] = (
    warn_of_expiry,
    end_expired_sessions,
    forget_old_challenges,
    forget_closed_windows,
    forget_expired_values,
    forget_old_failures,
    forget_admin_sessions,
    forget_old_events,
    forget_finished_tasks,
)


def do_upkeep() -> bool:
    """Does every duty, the others too when one fails; whether all went well."""
    went_well = True
    for duty in DUTIES:
        try:
            count = duty()
        except Exception:
            logger.exception("Upkeep: %s failed", duty.__name__)
            went_well = False
        else:
            if count:
                logger.info("Upkeep: %s: %d", duty.__name__, count)
    return went_well

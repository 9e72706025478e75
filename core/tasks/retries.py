"""When a task that failed for a passing reason is tried again."""

import random
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

# Spread, so that what failed together does not come back together.
_JITTER = 0.2


def next_try(attempts: int, give_up_at: datetime | None = None) -> datetime | None:
    """The time of the next attempt after so many; ``None`` when none is left."""
    if not may_be_tried_again(attempts):
        return None
    spread = random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311  (nothing to guess)
    wait = timedelta(seconds=settings.TASK_RETRY_SECONDS[attempts - 1] * spread)
    moment = timezone.now() + wait
    return moment if give_up_at is None or moment < give_up_at else None


def may_be_tried_again(attempts: int) -> bool:
    return attempts <= len(settings.TASK_RETRY_SECONDS)

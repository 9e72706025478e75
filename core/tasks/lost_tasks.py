"""Tasks whose worker is gone: killed, or its machine with it.

An attempt may run for ``TASK_TIMEOUT`` seconds, and its worker sees to that. What still counts as
running after ``TASK_LEASE`` has no worker any more.
"""

import logging
from datetime import timedelta

from django.conf import settings
from django.db.models import Q
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from core.tasks import endings
from core.tasks.retries import may_be_tried_again

logger = logging.getLogger(__name__)


class WorkerLostError(Exception):
    """A task's worker did not come back from it."""


def take_up_lost_tasks() -> int:
    """Queues them again, those that have an attempt left; how many were lost.

    Any number of workers may do this at once: each attempt is ended by one of them.
    """
    now, lease = timezone.now(), timedelta(seconds=settings.TASK_LEASE_SECONDS)
    # Tasks that began in the future began before the clock was set back.
    is_lost = Q(started_at__lte=now - lease) | Q(started_at__gt=now + lease)
    lost = DBTaskResult.objects.running().filter(is_lost)
    return sum(_take_up(row) for row in lost.order_by("started_at"))


def _take_up(row: DBTaskResult) -> bool:
    worker, attempts = (row.worker_ids or ["?"])[-1], len(row.worker_ids)
    error = WorkerLostError(f"worker {worker} did not come back from attempt {attempts}")
    logger.warning("Task id=%s: %s", row.pk, error)
    if may_be_tried_again(attempts):
        return endings.put_off(row, error, until=timezone.now())
    return endings.fail(row, error)

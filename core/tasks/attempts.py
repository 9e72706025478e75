"""Attempts at a task: when the next one is, how one ends, and those whose worker is gone.

A worker that was slow, so that another has taken its task up, changes nothing any more.

An attempt may run for ``TASK_TIMEOUT`` seconds, and its worker sees to that. What still counts as
running after ``TASK_LEASE`` has no worker any more.
"""

import logging
import random
from datetime import datetime, timedelta
from traceback import format_exception
from typing import Any

from django.conf import settings
from django.db.models import Q
from django.utils import timezone
from django_tasks import TaskResultStatus
from django_tasks.utils import normalize_json
from django_tasks_db.models import DBTaskResult
from django_tasks_db.utils import retry

from core.http.redaction import redact

logger = logging.getLogger(__name__)


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


_NO_ERROR = {"exception_class_path": "", "traceback": ""}


def succeed(row: DBTaskResult, return_value: Any) -> bool:
    return _end(
        row,
        status=TaskResultStatus.SUCCESSFUL,
        finished_at=timezone.now(),
        return_value=normalize_json(return_value),
        **_NO_ERROR,
    )


def fail(row: DBTaskResult, error: BaseException) -> bool:
    """For good; an administrator may queue it again."""
    return _end(
        row, status=TaskResultStatus.FAILED, finished_at=timezone.now(), **_described(error)
    )


def put_off(row: DBTaskResult, error: BaseException, until: datetime) -> bool:
    """Back into the queue, to be tried again then."""
    return _end(row, status=TaskResultStatus.READY, run_after=until, **_described(error))


def give_back(row: DBTaskResult) -> bool:
    """Back into the queue at once: its worker was told to stop in the middle."""
    return _end(row, status=TaskResultStatus.READY, run_after=timezone.now())


@retry()
def _end(row: DBTaskResult, **values: Any) -> bool:
    """Whether it was still this attempt's to end."""
    for name, value in values.items():
        setattr(row, name, value)
    # When an attempt started tells it from every other.
    attempt = DBTaskResult.objects.running().filter(pk=row.pk, started_at=row.started_at)
    is_ours = attempt.update(**values) == 1
    if not is_ours:
        logger.warning("Task id=%s was taken up by another worker meanwhile", row.pk)
    return is_ours


def _described(error: BaseException) -> dict[str, str]:
    kind = type(error)
    return {
        "exception_class_path": f"{kind.__module__}.{kind.__qualname__}",
        "traceback": redact("".join(format_exception(error))),
    }


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
        return put_off(row, error, until=timezone.now())
    return fail(row, error)

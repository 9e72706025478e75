"""Attempts at a task: how each one ends, when the next one is due, and which ones were lost.

An attempt may run for ``TASK_TIMEOUT`` seconds, which its worker enforces. An attempt that is
still marked as running after ``TASK_LEASE`` was lost with its worker and is queued again; if
that worker still reports a result, it is ignored. The functions that end an attempt return whether
the result was recorded.
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

# Spreads the retries of tasks that failed together.
_JITTER = 0.2
_NO_ERROR = {"exception_class_path": "", "traceback": ""}

logger = logging.getLogger(__name__)


class WorkerLostError(Exception):
    """A task's worker ended without recording a result."""


def next_try(attempts: int, give_up_at: datetime | None = None) -> datetime | None:
    """Returns when the attempt after the first ``attempts`` is due.

    ``None`` if no attempt is left, or if it would not be due before ``give_up_at``.
    """
    if not has_attempt_left(attempts):
        return None
    spread = random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311  (nothing to guess)
    wait = timedelta(seconds=settings.TASK_RETRY_SECONDS[attempts - 1] * spread)
    moment = timezone.now() + wait
    return moment if give_up_at is None or moment < give_up_at else None


def has_attempt_left(attempts: int) -> bool:
    return attempts <= len(settings.TASK_RETRY_SECONDS)


def succeed(row: DBTaskResult, return_value: Any) -> bool:
    return _end(
        row,
        status=TaskResultStatus.SUCCESSFUL,
        finished_at=timezone.now(),
        return_value=normalize_json(return_value),
        **_NO_ERROR,
    )


def fail(row: DBTaskResult, error: BaseException) -> bool:
    """Ends the task for good; an administrator may queue it again."""
    return _end(
        row, status=TaskResultStatus.FAILED, finished_at=timezone.now(), **_described(error)
    )


def retry_at(row: DBTaskResult, error: BaseException, moment: datetime) -> bool:
    """Returns the task to the queue, due at ``moment``."""
    return _end(row, status=TaskResultStatus.READY, run_after=moment, **_described(error))


def release(row: DBTaskResult) -> bool:
    """Returns the task to the queue at once: its worker was stopped during the attempt."""
    return _end(row, status=TaskResultStatus.READY, run_after=timezone.now())


def requeue_lost_tasks() -> int:
    """Queues lost tasks again, or fails those without an attempt left.

    Returns the number of tasks changed. Any number of workers may call it at once: only one of them
    ends each attempt.
    """
    now, lease = timezone.now(), timedelta(seconds=settings.TASK_LEASE_SECONDS)
    # A start in the future means that the clock has been set back since.
    is_lost = Q(started_at__lte=now - lease) | Q(started_at__gt=now + lease)
    lost = DBTaskResult.objects.running().filter(is_lost)
    return sum(_requeue(row) for row in lost.order_by("started_at"))


def _requeue(row: DBTaskResult) -> bool:
    worker, attempts = (row.worker_ids or ["?"])[-1], len(row.worker_ids)
    error = WorkerLostError(f"worker {worker} was lost during attempt {attempts}")
    logger.warning("Task id=%s: %s", row.pk, error)
    if has_attempt_left(attempts):
        return retry_at(row, error, timezone.now())
    return fail(row, error)


@retry()
def _end(row: DBTaskResult, **values: Any) -> bool:
    """Updates the row, unless another worker has taken over the task; returns whether it did so."""
    for name, value in values.items():
        setattr(row, name, value)
    # The start time identifies the attempt.
    attempt = DBTaskResult.objects.running().filter(pk=row.pk, started_at=row.started_at)
    is_ours = attempt.update(**values) == 1
    if not is_ours:
        logger.warning("Task id=%s was taken over by another worker", row.pk)
    return is_ours


def _described(error: BaseException) -> dict[str, str]:
    kind = type(error)
    return {
        "exception_class_path": f"{kind.__module__}.{kind.__qualname__}",
        "traceback": redact("".join(format_exception(error))),
    }

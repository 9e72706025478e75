"""How an attempt at a task ends. Each is one UPDATE, which only the attempt's own worker makes.

A worker that was slow, so that another has taken its task up, changes nothing any more.
"""

import logging
from datetime import datetime
from traceback import format_exception
from typing import Any

from django.utils import timezone
from django_tasks import TaskResultStatus
from django_tasks.utils import normalize_json
from django_tasks_db.models import DBTaskResult
from django_tasks_db.utils import retry

from core.http.redaction import redact

logger = logging.getLogger(__name__)

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

"""Which task an event of the background worker belongs to, and which request asked for it."""

import sys
from typing import Any

import structlog
from django_tasks import TaskResult, TaskResultStatus
from django_tasks.signals import log_task_finished, log_task_started, task_finished, task_started
from structlog.contextvars import bind_contextvars, clear_contextvars

logger = structlog.get_logger(__name__)

REQUEST_ID = "request_id"


def follow_tasks() -> None:
    """Binds each task's context while it runs, and writes down its end in place of the queue."""
    task_started.disconnect(log_task_started)
    task_finished.disconnect(log_task_finished)
    task_started.connect(_bind)
    task_finished.connect(_finish)


def _bind(sender: Any, task_result: TaskResult[Any], **kwargs: Any) -> None:
    clear_contextvars()
    bind_contextvars(task=task_result.id, task_name=task_result.task.name)
    # A task that takes the id of the request that enqueued it has it in its events too.
    if request_id := task_result.kwargs.get(REQUEST_ID):
        bind_contextvars(request_id=request_id)
    logger.debug("Task started")


def _finish(sender: Any, task_result: TaskResult[Any], **kwargs: Any) -> None:
    if task_result.status == TaskResultStatus.FAILED:
        # Sent where the exception is handled: its traceback is at hand.
        logger.error("Task failed", exc_info=sys.exc_info())
    else:
        logger.info("Task succeeded", duration_ms=_duration_ms(task_result))
    clear_contextvars()


def _duration_ms(result: TaskResult[Any]) -> float | None:
    if result.started_at is None or result.finished_at is None:
        return None
    return round((result.finished_at - result.started_at).total_seconds() * 1000, 3)

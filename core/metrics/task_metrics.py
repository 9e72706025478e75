"""Background tasks, counted as they end by the worker that ran them."""

from typing import Any

from django_tasks import TaskResult
from django_tasks.signals import task_finished, task_started

from core.metrics.catalogue import TASKS_FINISHED
from core.metrics.process_files import announce


def count_tasks() -> None:
    task_started.connect(_announce)
    task_finished.connect(_count)


def _announce(sender: Any, **kwargs: Any) -> None:
    announce("background worker")


def _count(sender: Any, task_result: TaskResult[Any], **kwargs: Any) -> None:
    TASKS_FINISHED.inc(task_result.task.name, task_result.status.lower())

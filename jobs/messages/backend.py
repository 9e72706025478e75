"""The backend of Django's Tasks interface that ``TASKS`` names: tasks become rows of messages."""

from typing import Any

from django.db import transaction
from django.utils.module_loading import import_string
from django_tasks import TaskResult, TaskResultStatus
from django_tasks.backends.base import BaseTaskBackend
from django_tasks.base import Task, TaskError
from django_tasks.signals import task_enqueued
from django_tasks.utils import normalize_json

from jobs.models import Message
from jobs.queue.wake_up import MESSAGES, wake


class MessageBackend(BaseTaskBackend):
    def enqueue(self, task: Task[Any, Any], args: Any, kwargs: Any) -> TaskResult[Any]:
        """Stores the task in the caller's transaction."""
        self.validate_task(task)
        message = Message.objects.create(
            task_path=task.module_path,
            queue=task.queue_name,
            arguments=normalize_json({"args": args, "kwargs": kwargs}),
        )
        result = result_of(message)
        task_enqueued.send(type(self), task_result=result)
        transaction.on_commit(lambda: wake(MESSAGES))
        return result


def result_of(message: Message) -> TaskResult[Any]:
    """The message as the Tasks interface shows it. Raises ``ImportError`` for an unknown task."""
    task = import_string(message.task_path)
    if not isinstance(task, Task):
        raise ImportError(f"{message.task_path} is not a task")  # noqa: TRY004  (like a missing one)
    return TaskResult(
        task=task,
        id=str(message.pk),
        status=TaskResultStatus[message.status],
        enqueued_at=message.enqueued_at,
        started_at=message.started_at,
        finished_at=message.finished_at,
        last_attempted_at=message.started_at,
        args=message.arguments["args"],
        kwargs=message.arguments["kwargs"],
        backend=task.backend,
        errors=[TaskError(exception_class_path="", traceback=message.traceback)]
        if message.status == TaskResultStatus.FAILED
        else [],
        worker_ids=message.worker_ids,
    )

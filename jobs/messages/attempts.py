"""Attempts at messages: their claim, the call of their task, how each one ends, which were lost.

An attempt may run for ``TASK_TIMEOUT`` seconds, which its runner enforces. An attempt that is still
marked as running after ``TASK_LEASE`` was lost with its runner and is queued again; if that runner
still reports a result, it is ignored. The functions that end an attempt return whether the result
was recorded.
"""

import ctypes
import logging
import math
import threading
import time
from datetime import datetime, timedelta
from traceback import format_exception
from typing import Any

from django.conf import settings
from django.db import close_old_connections, transaction
from django.db.models import Q
from django.utils import timezone
from django_tasks import (
    DEFAULT_TASK_BACKEND_ALIAS,
    TaskContext,
    TaskResult,
    TaskResultStatus,
    task_backends,
)
from django_tasks.signals import task_finished, task_started

from core.database.unavailable import DatabaseUnavailable
from core.errors import TryAgainError
from core.http.redaction import redact
from core.metrics.instruments import TASKS_FINISHED
from jobs.messages.backend import MessageBackend, result_of
from jobs.models import Message
from jobs.models.message import AT_ONCE
from jobs.queue.finish import backoff

# Pauses before an outcome is stored that met an outage of the database; then it is lost.
_OUTAGE_PAUSES_SECONDS = (0.1, 1, 5)

logger = logging.getLogger(__name__)


class WorkerLostError(Exception):
    """The worker of a message ended without recording a result."""


def claim(queue: str, most: int, worker_id: str) -> list[Message]:
    """Takes due messages of the queue, the longest due first; no other worker has them then."""
    with transaction.atomic():
        due = Message.objects.due().filter(queue=queue).select_for_update(skip_locked=True)
        claimed = list(due.order_by("due_at", "pk")[:most])
        for message in claimed:
            message.status, message.started_at = TaskResultStatus.RUNNING, timezone.now()
            message.worker_ids = [*message.worker_ids, worker_id]
            message.save(update_fields=["status", "started_at", "worker_ids"])
    return claimed


def queues_with_due_messages() -> list[str]:
    """One look into the index for each queue, however many messages wait."""
    queues: set[str] = task_backends[DEFAULT_TASK_BACKEND_ALIAS].queues
    due = Message.objects.due()
    return [queue for queue in sorted(queues) if due.filter(queue=queue).exists()]


def succeed(message: Message) -> bool:
    return _end(
        message, status=TaskResultStatus.SUCCESSFUL, finished_at=timezone.now(), traceback=""
    )


def fail(message: Message, error: BaseException) -> bool:
    """Ends the message for good; an administrator may queue it again."""
    return _end(
        message,
        status=TaskResultStatus.FAILED,
        finished_at=timezone.now(),
        traceback=_described(error),
    )


def next_try(message: Message, give_up_at: datetime | None = None) -> datetime | None:
    """Returns when the next attempt is due.

    ``None`` if no attempt is left, or if it would not be due before ``give_up_at``.
    """
    if not _has_attempt_left(message):
        return None
    seconds = backoff(len(message.worker_ids), settings.TASK_RETRY_SECONDS)
    due_at = timezone.now() + timedelta(seconds=seconds)
    return due_at if give_up_at is None or due_at < give_up_at else None


def _has_attempt_left(message: Message) -> bool:
    return len(message.worker_ids) <= len(settings.TASK_RETRY_SECONDS)


def retry_at(message: Message, error: BaseException, due_at: datetime) -> bool:
    """Returns the message to the queue."""
    return _end(message, status=TaskResultStatus.READY, due_at=due_at, traceback=_described(error))


def release(message: Message) -> bool:
    """Returns the message to the queue at once: its runner stops during the attempt."""
    return _end(message, status=TaskResultStatus.READY, due_at=AT_ONCE)


def requeue_lost() -> int:
    """Queues lost messages again, or fails those without an attempt left.

    Returns the number of messages changed. Any number of runners may call it at once: only one of
    them ends each attempt.
    """
    now, lease = timezone.now(), timedelta(seconds=settings.TASK_LEASE_SECONDS)
    # A start in the future means that the clock has been set back since.
    is_lost = Q(started_at__lte=now - lease) | Q(started_at__gt=now + lease)
    lost = Message.objects.running().filter(is_lost)
    return sum(_requeue(message) for message in lost.order_by("started_at"))


def _requeue(message: Message) -> bool:
    worker_id, attempts = message.worker_ids[-1], len(message.worker_ids)
    error = WorkerLostError(f"worker {worker_id} was lost during attempt {attempts}")
    logger.warning("Task id=%s: %s", message.pk, error)
    if _has_attempt_left(message):
        return retry_at(message, error, AT_ONCE)
    return fail(message, error)


def _end(message: Message, **values: Any) -> bool:
    """Updates the row, unless another worker has taken over the message."""
    attempt = Message.objects.running().filter(pk=message.pk, started_at=message.started_at)
    is_ours = _update_through_outages(attempt, values) == 1
    for name, value in values.items():
        setattr(message, name, value)
    if not is_ours:
        logger.warning("Task id=%s was taken over by another worker", message.pk)
    return is_ours


def _update_through_outages(attempt: Any, values: dict[str, Any]) -> int:
    for seconds in _OUTAGE_PAUSES_SECONDS:
        try:
            return int(attempt.update(**values))
        except DatabaseUnavailable:
            close_old_connections()
            time.sleep(seconds)
    return int(attempt.update(**values))


def _described(error: BaseException) -> str:
    return redact("".join(format_exception(error)))


# --- The time limit -------------------------------------------------------------------------------

# The interruption is repeated in case the interrupted code swallows the error.
REPEAT_SECONDS = 5


class OutOfTimeError(TimeoutError):
    """An attempt ran longer than its time limit."""

    def __init__(self) -> None:
        super().__init__(f"took longer than {settings.TASK_TIMEOUT_SECONDS:g} s")


class TimeLimit:
    """Limits a block of one thread to ``TASK_TIMEOUT``; another thread calls ``enforce`` often.

    Python raises the error when the block's thread next runs Python code, so a system call that
    blocks must have a timeout of its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread_id: int | None = None
        self._ends_at = math.inf

    def __enter__(self) -> None:
        self._ends_at = time.monotonic() + settings.TASK_TIMEOUT_SECONDS
        self._thread_id = threading.get_ident()

    def __exit__(self, *error: object) -> None:
        self.end()

    def end(self) -> None:
        """Ends the limit, in the block's thread; call it again where it was interrupted itself.

        An interruption that the block did not meet any more must not hit what follows, so it is
        raised here. It is not withdrawn: CPython would take the slow path of its evaluation loop in
        all threads from then on, because only raising the exception resets the flag.
        """
        try:
            with self._lock:
                self._thread_id = None
            # A loop is where Python looks for interruptions.
            for _ in range(2):
                pass
        except OutOfTimeError:
            pass

    def enforce(self) -> None:
        """Interrupts the block if its time is up."""
        with self._lock:
            if self._thread_id is not None and time.monotonic() >= self._ends_at:
                self._ends_at = time.monotonic() + REPEAT_SECONDS
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread_id), ctypes.py_object(OutOfTimeError)
                )


# --- One attempt ----------------------------------------------------------------------------------


def perform(message: Message, limit: TimeLimit) -> None:
    """Retries the message after an error that may pass, and fails it after any other."""
    try:
        result = result_of(message)
    except ImportError as error:
        logger.exception("Task id=%s path=%s: unknown task", message.pk, message.task_path)
        fail(message, error)
        return
    task_started.send(MessageBackend, task_result=result)
    try:
        with limit:
            _call(result)
    except (TryAgainError, OutOfTimeError) as error:
        limit.end()
        _retry(message, error)
    except DatabaseUnavailable as error:
        # A lost connection could not take the result either.
        close_old_connections()
        _retry(message, error)
    except Exception as error:  # noqa: BLE001  (whatever a task raises is its failure)
        _fail(message, error)
    else:
        if succeed(message):
            _announce_end(message)


def _call(result: TaskResult[None]) -> None:
    context = [TaskContext(task_result=result)] if result.task.takes_context else []
    result.task.call(*context, *result.args, **result.kwargs)


def _retry(message: Message, error: Exception) -> None:
    due_at = next_try(message, getattr(error, "give_up_at", None))
    if due_at is None:
        _fail(message, error)
    elif retry_at(message, error, due_at):
        text, at = " ".join(str(error).split()), due_at.isoformat(" ", "seconds")
        logger.warning(
            "Task id=%s path=%s: %s; retry at %s", message.pk, message.task_path, text, at
        )


def _fail(message: Message, error: Exception) -> None:
    if fail(message, error):
        _announce_end(message)


def _announce_end(message: Message) -> None:
    """Receivers of the signal log the end, and a failure with its traceback."""
    result = result_of(message)
    TASKS_FINISHED.labels(result.task.name, message.status.lower()).inc()
    task_finished.send(MessageBackend, task_result=result)

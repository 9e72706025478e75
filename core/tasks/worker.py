"""django-tasks-db's worker with a time limit, retries, and recovery of lost tasks."""

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.db import close_old_connections
from django_tasks import TaskContext
from django_tasks.signals import task_finished, task_started
from django_tasks_db.backend import DatabaseBackend
from django_tasks_db.management.commands import db_worker
from django_tasks_db.models import DBTaskResult

from core.database.unavailable import DatabaseUnavailable
from core.errors import TryAgainError
from core.tasks import attempts
from core.tasks.attempts import next_try, requeue_lost_tasks

LOST_TASKS_CHECK_SECONDS = 10
DATABASE_RETRY_SECONDS = 2
DATABASE_LOG_SECONDS = 60
# Repeats the alarm in case the interrupted code swallows the error.
_REPEAT_SECONDS = 5

logger = logging.getLogger(__name__)


class OutOfTimeError(TimeoutError):
    """A task ran longer than its time limit."""


class Worker(db_worker.Worker):
    """Retries tasks, limits the time of each attempt, and queues lost tasks again."""

    def run(self) -> None:
        if self.batch:
            self._work()
        else:
            threading.Thread(
                target=_requeue_lost_tasks_forever, daemon=True, name="lost tasks"
            ).start()
            run_through_outages(self._work)

    def _work(self) -> None:
        requeue_lost_tasks()
        super().run()

    def run_task(self, db_task_result: DBTaskResult) -> None:
        row = db_task_result
        self.running_task = True
        try:
            with time_limit(settings.TASK_TIMEOUT_SECONDS):
                return_value = _perform(row)
        except (KeyboardInterrupt, SystemExit):
            attempts.release(row)
            raise
        except (TryAgainError, OutOfTimeError) as error:
            _retry(row, error)
        except DatabaseUnavailable as error:
            # A lost connection could not take the result either.
            close_old_connections()
            _retry(row, error)
        except Exception as error:  # noqa: BLE001  (whatever a task raises is its failure)
            _fail(row, error)
        else:
            if attempts.succeed(row, return_value):
                task_finished.send(sender=DatabaseBackend, task_result=row.task_result)
        finally:
            self.running_task = False
            self._run_tasks += 1


def _perform(row: DBTaskResult) -> Any:
    task, task_result = row.task, row.task_result
    task_started.send(sender=DatabaseBackend, task_result=task_result)
    if task.takes_context:
        context = TaskContext(task_result=task_result)  # type: ignore[arg-type]
        return task.call(context, *task_result.args, **task_result.kwargs)
    return task.call(*task_result.args, **task_result.kwargs)


def _retry(row: DBTaskResult, error: Exception) -> None:
    moment = next_try(len(row.worker_ids), getattr(error, "give_up_at", None))
    if moment is None:
        _fail(row, error)
    elif attempts.retry_at(row, error, moment):
        at = moment.isoformat(" ", "seconds")
        text = " ".join(str(error).split())
        logger.warning("Task id=%s path=%s: %s; retry at %s", row.pk, row.task_path, text, at)


def _fail(row: DBTaskResult, error: Exception) -> None:
    if not attempts.fail(row, error):
        return
    try:
        task_result = row.task_result
    except (ImportError, SuspiciousOperation):
        logger.exception("Task id=%s path=%s: unknown task", row.pk, row.task_path)
    else:
        # Receivers of the signal log the failure.
        task_finished.send(sender=DatabaseBackend, task_result=task_result)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises ``OutOfTimeError`` in the body when the time is up.

    Uses SIGALRM, which only reaches the main thread, where workers run their tasks. In other
    threads there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(signal_number: int, frame: FrameType | None) -> None:
        raise OutOfTimeError(f"took longer than {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds, _REPEAT_SECONDS)
    try:
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        # Once more: an alarm may have interrupted the line that switches it off.
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _requeue_lost_tasks_forever() -> None:
    while True:
        time.sleep(LOST_TASKS_CHECK_SECONDS)
        try:
            requeue_lost_tasks()
        except DatabaseUnavailable:
            # The worker itself logs that it waits for the database.
            pass
        except Exception:
            logger.exception("The check for lost tasks failed and will be repeated")
        close_old_connections()


def run_through_outages(work: Callable[[], None]) -> None:
    """Runs ``work``, and runs it again after each database outage, until it returns."""
    logged_at: float | None = None
    while True:
        try:
            return work()
        except DatabaseUnavailable as error:
            now = time.monotonic()
            if logged_at is None or now - logged_at > DATABASE_LOG_SECONDS:
                logged_at = now
                logger.error("Waiting for the database: %s", " ".join(str(error).split()))  # noqa: TRY400
        close_old_connections()
        time.sleep(DATABASE_RETRY_SECONDS)

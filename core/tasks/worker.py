"""The worker: the library's, with a time limit, with ends of its own to a task's attempts."""

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

from core.errors import TryAgainError
from core.http.unavailable import DATABASE_ERRORS
from core.tasks import attempts
from core.tasks.attempts import next_try, take_up_lost_tasks

logger = logging.getLogger(__name__)


# Again and again, should whatever is interrupted swallow the error.
_REPEAT_SECONDS = 5


class OutOfTimeError(TimeoutError):
    """A task took longer than it may."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises ``OutOfTimeError`` inside when the time is up.

    By SIGALRM, which reaches the main thread, where workers run their tasks; elsewhere without
    effect.
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
        # Once more: an alarm may have come just as it was switched off.
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


LOOKS_FOR_LOST_TASKS_EVERY_SECONDS = 10


class Worker(db_worker.Worker):
    """Tries again what may work later, bounds each attempt, and looks for lost tasks."""

    def run(self) -> None:
        if self.batch:
            self._work()
        else:
            threading.Thread(target=_keep_looking, daemon=True, name="lost tasks").start()
            outlast(self._work)

    def _work(self) -> None:
        take_up_lost_tasks()
        super().run()

    def run_task(self, db_task_result: DBTaskResult) -> None:
        row = db_task_result
        self.running_task = True
        try:
            with time_limit(settings.TASK_TIMEOUT_SECONDS):
                return_value = _perform(row)
        except (KeyboardInterrupt, SystemExit):
            attempts.give_back(row)
            raise
        except (TryAgainError, OutOfTimeError) as error:
            _put_off(row, error)
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


def _put_off(row: DBTaskResult, error: TryAgainError | OutOfTimeError) -> None:
    until = next_try(len(row.worker_ids), getattr(error, "give_up_at", None))
    if until is None:
        _fail(row, error)
    elif attempts.put_off(row, error, until):
        again = until.isoformat(" ", "seconds")
        logger.warning("Task id=%s path=%s: %s; again at %s", row.pk, row.task_path, error, again)


def _fail(row: DBTaskResult, error: Exception) -> None:
    if not attempts.fail(row, error):
        return
    try:
        task_result = row.task_result
    except (ImportError, SuspiciousOperation):
        logger.exception("Task id=%s path=%s: there is no such task", row.pk, row.task_path)
    else:
        # Whoever hears of it logs it.
        task_finished.send(sender=DatabaseBackend, task_result=task_result)


def _keep_looking() -> None:
    while True:
        time.sleep(LOOKS_FOR_LOST_TASKS_EVERY_SECONDS)
        try:
            take_up_lost_tasks()
        except DATABASE_ERRORS:
            # The worker, which waits for the database too, says so.
            pass
        except Exception:
            logger.exception("Looking for lost tasks failed; it will be done again")
        close_old_connections()


PAUSE_SECONDS = 2
SAID_AGAIN_EVERY_SECONDS = 60


def outlast(work: Callable[[], None]) -> None:
    """Does the work, anew when the database goes away under it, until it ends by itself."""
    said_at: float | None = None
    while True:
        try:
            return work()
        except DATABASE_ERRORS as error:
            now = time.monotonic()
            if said_at is None or now - said_at > SAID_AGAIN_EVERY_SECONDS:
                said_at = now
                logger.error("Waiting for the database: %s", " ".join(str(error).split()))  # noqa: TRY400
        close_old_connections()
        time.sleep(PAUSE_SECONDS)

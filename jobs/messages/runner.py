"""Sends messages until it is told to stop, each in a thread of its own.

A slow mail server blocks the threads of its queue only. Neither runs nor messages of other queues
wait for it.
"""

import logging
import os
import socket
import threading
import time
from typing import NamedTuple

from django.db import close_old_connections, connection
from django.utils.crypto import get_random_string

from core.database.unavailable import DatabaseUnavailable
from core.waiting import return_pooled_connection
from jobs.messages.attempts import (
    TimeLimit,
    claim,
    perform,
    queues_with_due_messages,
    release,
    requeue_lost,
)
from jobs.models import Message
from jobs.queue.wake_up import MESSAGES, ChangeCounter, Listener

THREADS_PER_QUEUE = 8
# How often it looks for messages without being told.
LOOK_SECONDS = 0.5
# On SQLite nothing tells it; this look is cheap.
CHANGE_SECONDS = 0.05
LOST_CHECK_SECONDS = 10
OUTAGE_SECONDS = 2
OUTAGE_LOG_SECONDS = 60

logger = logging.getLogger(__name__)


class _Attempt(NamedTuple):
    message: Message
    limit: TimeLimit


class MessageRunner:
    """Sends the messages of all queues. ``run`` returns after ``stop``."""

    def __init__(self) -> None:
        self._worker_id = process_name()
        self._attempts: set[_Attempt] = set()
        self._wake_up = threading.Event()
        self._is_stopping = self._is_abandoned = False
        self._changes = ChangeCounter()
        self._lost_check_at = 0.0
        self._outage_logged_at = -float(OUTAGE_LOG_SECONDS)

    def stop(self) -> None:
        """Claims nothing more; ``run`` returns when the attempts in progress have ended.

        May be called from a signal handler.
        """
        self._is_stopping = True
        self._wake_up.set()

    def abandon(self) -> None:
        """Returns the messages in progress to the queue, because this process is about to end."""
        self._is_abandoned = True
        self.stop()
        for attempt in list(self._attempts):
            release(attempt.message)

    def run(self) -> None:
        """Works until ``stop``, through outages of the database and other failures."""
        listener = None
        if connection.vendor == "postgresql":
            listener = Listener(MESSAGES, self._wake_up.set)
            listener.start()
        try:
            while not (self._is_stopping and (self._is_abandoned or not self._attempts)):
                try:
                    self._look()
                    # Runs may need the connection meanwhile.
                    return_pooled_connection()
                    self._wait()
                except DatabaseUnavailable as error:
                    self._log_outage(error)
                    self._pause()
                except Exception:
                    logger.exception("Messages could not be claimed; this is repeated")
                    self._pause()
        finally:
            connection.close()
            if listener is not None:
                listener.stop()

    def _look(self) -> None:
        for attempt in list(self._attempts):
            attempt.limit.enforce()
        if self._is_stopping:
            return
        if time.monotonic() >= self._lost_check_at:
            self._lost_check_at = time.monotonic() + LOST_CHECK_SECONDS
            requeue_lost()
        for queue in queues_with_due_messages():
            running = [each.message.queue for each in list(self._attempts)].count(queue)
            if running < THREADS_PER_QUEUE:
                for message in claim(queue, THREADS_PER_QUEUE - running, self._worker_id):
                    self._start(_Attempt(message, TimeLimit()))

    def _start(self, attempt: _Attempt) -> None:
        # A daemon: the process must be able to end while a server does not answer.
        thread = threading.Thread(target=self._work, args=(attempt,), daemon=True, name="message")
        self._attempts.add(attempt)
        try:
            thread.start()
        except RuntimeError:
            # The system has no thread left now.
            self._attempts.remove(attempt)
            release(attempt.message)
            raise

    def _work(self, attempt: _Attempt) -> None:
        try:
            perform(attempt.message, attempt.limit)
        except DatabaseUnavailable as error:
            self._log_outage(error)
        except Exception:
            logger.exception("Task id=%s: its end is unknown", attempt.message.pk)
        finally:
            connection.close()
            self._attempts.remove(attempt)
            self._wake_up.set()

    def _wait(self) -> None:
        """Until somebody wakes it, the database changes, or it is time to look."""
        if connection.vendor != "sqlite":
            self._wake_up.wait(LOOK_SECONDS)
        else:
            end = time.monotonic() + LOOK_SECONDS
            while time.monotonic() < end and not self._wake_up.wait(CHANGE_SECONDS):
                if self._changes.has_changed():
                    break
        self._wake_up.clear()

    def _pause(self) -> None:
        close_old_connections()
        time.sleep(OUTAGE_SECONDS)

    def _log_outage(self, error: BaseException) -> None:
        now = time.monotonic()
        if now - self._outage_logged_at >= OUTAGE_LOG_SECONDS:
            self._outage_logged_at = now
            logger.error("Messages wait for the database: %s", " ".join(str(error).split()))


def process_name() -> str:
    """Returns a unique name with the host and process id, which the admin shows with messages."""
    return f"{socket.gethostname()[:40]}-{os.getpid()}-{get_random_string(6)}"

"""Tells runners that work was queued: runs, or messages, each on a channel of its own.

PostgreSQL notifies them, after the commit and on another connection: within the transaction, NOTIFY
would take a lock that serialises all commits. On SQLite runners see by themselves that the file has
changed. Notifications only save time, because runners look once a second anyway.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
from django.db import connection, connections

from core.database.postgresql.connection import TimeLimitedConnection

logger = logging.getLogger(__name__)

RUNS = "moonhook_queue"
MESSAGES = "moonhook_messages"
# At most ten notifications a second of a channel from a process.
_PAUSE_SECONDS = 0.1
_IDLE_SECONDS = 0.5
_RECONNECT_SECONDS = 2.0


def wake_runners() -> None:
    wake(RUNS)


def wake(channel: str) -> None:
    """Never blocks and never raises: a runner that hears nothing looks within a second."""
    if connection.vendor == "postgresql":
        _notifier.notify(channel)


class _Notifier:
    """Notifies from a thread that lives while there is something to say."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channels: set[str] = set()
        self._asked = threading.Event()
        self._is_running = False

    def notify(self, channel: str) -> None:
        with self._lock:
            self._channels.add(channel)
            self._asked.set()
            if self._is_running:
                return
            self._is_running = True
        thread = threading.Thread(
            target=self._run, args=(_connector(),), daemon=True, name="queue notifier"
        )
        try:
            thread.start()
        except RuntimeError as error:
            # The system has no thread left now; a later call may find one.
            logger.warning("Runners not notified: %s", error)
            with self._lock:
                self._is_running = False

    def _run(self, connect: Callable[[], Any]) -> None:
        while True:
            try:
                with connect() as notifying:
                    while self._asked.wait(_IDLE_SECONDS) and not notifying.is_demoted():
                        for channel in self._take_channels():
                            notifying.execute(f"NOTIFY {channel}")
                        time.sleep(_PAUSE_SECONDS)
            except (psycopg.Error, OSError) as error:
                logger.warning("Runners not notified: %s", " ".join(str(error).split()))
                self._take_channels()
            with self._lock:
                if not self._asked.is_set():
                    self._is_running = False
                    return

    def _take_channels(self) -> set[str]:
        with self._lock:
            self._asked.clear()
            taken, self._channels = self._channels, set()
        return taken


_notifier = _Notifier()


def _connector() -> Callable[[], Any]:
    """Opens connections outside of the pool, to the database of this process."""
    parameters = connections["default"].get_connection_params()
    for name in ("pool", "context", "cursor_factory", "prepare_threshold"):
        parameters.pop(name, None)

    def connect() -> Any:
        return TimeLimitedConnection.connect(**parameters, autocommit=True)

    return connect


class Listener:
    """Calls ``on_change`` from a thread whenever work was queued (PostgreSQL)."""

    def __init__(self, channel: str, on_change: Callable[[], object]) -> None:
        self._channel = channel
        self._on_change = on_change
        self._connect = _connector()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="queue listener")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(timeout=2 * _RECONNECT_SECONDS)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                with self._connect() as listening:
                    listening.execute(f"LISTEN {self._channel}")
                    self._on_change()
                    while not self._stopped.is_set() and not listening.is_demoted():
                        for _ in listening.notifies(timeout=0.5, stop_after=1):
                            self._on_change()
            except (psycopg.Error, OSError) as error:
                logger.warning("Not listening for work: %s", " ".join(str(error).split()))
                self._stopped.wait(_RECONNECT_SECONDS)


class ChangeCounter:
    """Whether another connection has changed the database since the last look (SQLite)."""

    def __init__(self) -> None:
        self._version: int | None = None

    def has_changed(self) -> bool:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA data_version")
            version = cursor.fetchone()[0]
        changed, self._version = version != self._version, version
        return changed

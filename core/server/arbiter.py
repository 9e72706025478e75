"""The web server: the parent process of the web workers."""

import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from gunicorn.app.base import Application
from gunicorn.arbiter import Arbiter
from gunicorn.sock import create_sockets
from gunicorn.util import import_app

from core.node_state import is_draining, start_draining
from core.server.listeners import reject_new_connections
from core.server.worker import MoonhookWorker


class WebServer(Application):
    """gunicorn with our arbiter: loads the application once, and serves it in forks."""

    def __init__(self, configuration: Path) -> None:
        self._configuration = configuration
        super().__init__()
        self.wsgi()

    def load_config(self) -> None:
        self.load_config_from_file(str(self._configuration))

    def load(self) -> Any:
        return import_app(self.cfg.wsgi_app)

    def serve(self, listeners: Sequence[socket.socket]) -> None:
        """Serves until a signal ends it, with SystemExit. The caller keeps the sockets open."""
        MoonhookArbiter(self, listeners).run()


class MoonhookArbiter(Arbiter):
    """gunicorn's arbiter on given sockets, which replaces workers in advance, and drains.

    - The successor of a dead worker takes over its socket and the clients that wait there.
    - A worker that has reached ``max_requests``, or any worker after SIGHUP, is stopped only when
      its successor is ready.
    - When the node stops, /readyz says so and the workers serve on for ``DRAIN_SECONDS``. They stop
      at once if the supervisor was killed, because its successor needs the port.
    - After a SIGTERM of somebody else, clients wait at the sockets for the next web server.
    """

    _stop_at: float | None = None
    _is_replacement_due = False

    def __init__(self, server: WebServer, listeners: Sequence[socket.socket]) -> None:
        super().__init__(server)
        self._parent_id = os.getppid()
        self.LISTENERS = create_sockets(
            self.cfg, self.log, [listener.detach() for listener in listeners]
        )

    def assign_listener(self, worker: MoonhookWorker) -> None:
        """Gives the worker, before the fork, the socket on which the fewest workers listen."""
        taken = Counter(each.listener_index for each in self._staying())
        worker.listener_index = min(range(len(self.LISTENERS)), key=lambda index: taken[index])

    def manage_workers(self) -> None:
        if self._stop_at is not None and time.monotonic() >= self._stop_at:
            raise StopIteration
        if self._is_replacement_due and not self._is_replacing():
            self._replace_workers()
        while len(self._staying()) < self.num_workers:
            self.spawn_worker()
        for worker in self._staying()[: -self.num_workers]:
            worker.lifecycle.retire()
        if sum(worker.lifecycle.is_ready for worker in self._staying()) >= self.num_workers:
            for worker in self._workers():
                if worker.lifecycle.is_retiring and not worker.has_stop_signal:
                    worker.has_stop_signal = True
                    self.kill_worker(worker.pid, signal.SIGTERM)

    def handle_hup(self) -> None:
        """Replaces the workers; the new ones have the settings that the arbiter started with.

        Signals during a replacement count as one after it, so that repeated ones add no workers.
        """
        self._is_replacement_due = True

    def _replace_workers(self) -> None:
        self._is_replacement_due = False
        self.log.info("Replacing the workers")
        for worker in self._workers():
            if worker.lifecycle.is_ready:
                worker.lifecycle.retire()

    def handle_term(self) -> None:
        if self._stop_at is not None:
            return
        if os.getppid() != self._parent_id:
            start_draining()
            seconds = 0
        else:
            seconds = settings.DRAIN_SECONDS if is_draining() else 0
        self.log.info("Stopping in %d seconds", seconds)
        self._stop_at = time.monotonic() + seconds

    def reexec(self) -> None:
        """Ignores SIGUSR2: a command line of its own, to start a copy with, it does not have."""

    def stop(self, graceful: bool = True) -> None:
        if is_draining():
            for listener in self.LISTENERS:
                reject_new_connections(listener)
        super().stop(graceful)

    def _workers(self) -> list[MoonhookWorker]:
        """Returns the workers, oldest first."""
        return sorted(self.WORKERS.values(), key=lambda worker: worker.age)

    def _staying(self) -> list[MoonhookWorker]:
        return [each for each in self._workers() if not each.lifecycle.is_retiring]

    def _is_replacing(self) -> bool:
        return any(worker.lifecycle.is_retiring for worker in self._workers())

    def wait_for_signals(self, timeout: float = 1.0) -> Any:
        """Wakes up in time for the end of the drain, and often while workers are replaced."""
        if self._is_replacing():
            timeout = min(timeout, 0.2)
        if self._stop_at is not None:
            timeout = min(timeout, max(0.0, self._stop_at - time.monotonic()))
        return super().wait_for_signals(timeout)

"""The parent process of the web workers."""

import os
import signal
import time
from collections import Counter
from typing import Any

from django.conf import settings
from gunicorn.arbiter import Arbiter

from core.server.lifecycle import start_draining
from core.server.listeners import listen, reject_new_connections
from core.server.service_table import services_of_this_node
from core.server.worker import MoonhookWorker


class MoonhookArbiter(Arbiter):
    """gunicorn's arbiter, which also owns the sockets, replaces workers in advance, and drains.

    - The successor of a dead worker takes over its socket and the clients that wait there.
    - A worker that has reached ``max_requests``, or any worker after SIGHUP, is stopped only when
      its successor is ready.
    - After SIGTERM, /readyz reports the shutdown and the workers serve on for ``DRAIN_SECONDS``.
      They stop at once if the supervisor was killed, because its successor needs the port.
    """

    _stop_at: float | None = None

    def start(self) -> None:
        # After SIGUSR2 the new arbiter inherits the sockets of the old one.
        if "GUNICORN_PID" not in os.environ:
            self.LISTENERS = listen(
                settings.BIND, settings.PORT, count=self.cfg.workers, cfg=self.cfg, log=self.log
            )
        super().start()

    def assign_listener(self, worker: MoonhookWorker) -> None:
        """Gives the worker, before the fork, the socket on which the fewest workers listen."""
        taken = Counter(each.listener_index for each in self._staying())
        worker.listener_index = min(range(len(self.LISTENERS)), key=lambda index: taken[index])

    def manage_workers(self) -> None:
        if self._stop_at is not None and time.monotonic() >= self._stop_at:
            raise StopIteration
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

        Workers that are still starting stay, so that repeated signals do not add workers.
        """
        self.log.info("Replacing the workers")
        for worker in self._workers():
            if worker.lifecycle.is_ready:
                worker.lifecycle.retire()

    def handle_term(self) -> None:
        if self._stop_at is None:
            seconds = 0 if self._is_orphan() else settings.DRAIN_SECONDS
            self.log.info("Stopping in %d seconds", seconds)
            start_draining()
            self._stop_at = time.monotonic() + seconds

    def stop(self, graceful: bool = True) -> None:
        for listener in self.LISTENERS:
            reject_new_connections(listener)
        super().stop(graceful)

    def _is_orphan(self) -> bool:
        services = services_of_this_node()
        return services is not None and not services.is_child_of_parent()

    def _workers(self) -> list[MoonhookWorker]:
        """Returns the workers, oldest first."""
        return sorted(self.WORKERS.values(), key=lambda worker: worker.age)

    def _staying(self) -> list[MoonhookWorker]:
        return [each for each in self._workers() if not each.lifecycle.is_retiring]

    def wait_for_signals(self, timeout: float = 1.0) -> Any:
        """Wakes up in time for the end of the drain, and often while workers are replaced."""
        if any(worker.lifecycle.is_retiring for worker in self._workers()):
            timeout = min(timeout, 0.2)
        if self._stop_at is not None:
            timeout = min(timeout, max(0.0, self._stop_at - time.monotonic()))
        return super().wait_for_signals(timeout)

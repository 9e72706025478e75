"""The parent of the web workers."""

import os
import signal
import time
from collections import Counter
from typing import Any

from django.conf import settings
from gunicorn.arbiter import Arbiter

from core.server.lifecycle import start_draining
from core.server.listeners import ignore_newcomers, listen
from core.server.services import services_of_this_node
from core.server.worker import MoonhookWorker


class MoonhookArbiter(Arbiter):
    """gunicorn's parent, who also holds the sockets, replaces before it stops, and drains.

    - A worker that dies leaves its socket and whoever waits there to its successor.
    - A worker that has done its share (``max_requests``), or all of them at SIGHUP, are stopped
      when their successors are ready, not before.
    - At SIGTERM the node says that it stops, and serves on for ``DRAIN_SECONDS``; at once where
      SIGTERM means that its own parent has been killed, whose successor needs the port.
    """

    _stop_at: float | None = None

    def start(self) -> None:
        # A parent that has taken over from another one (SIGUSR2) finds its sockets open.
        if "GUNICORN_PID" not in os.environ:
            self.LISTENERS = listen(
                settings.BIND, settings.PORT, count=self.cfg.workers, cfg=self.cfg, log=self.log
            )
        super().start()

    def place_worker(self, worker: MoonhookWorker) -> None:
        """Gives the worker, before it is forked, the socket that the fewest listen at."""
        taken = Counter(each.place for each in self._staying())
        worker.place = min(range(len(self.LISTENERS)), key=lambda place: taken[place])

    def manage_workers(self) -> None:
        if self._stop_at is not None and time.monotonic() >= self._stop_at:
            raise StopIteration
        while len(self._staying()) < self.num_workers:
            self.spawn_worker()
        for worker in self._staying()[: -self.num_workers]:
            worker.lifecycle.retire()
        if sum(worker.lifecycle.is_ready for worker in self._staying()) >= self.num_workers:
            for worker in self._workers():
                if worker.lifecycle.is_retiring and not worker.is_told_to_stop:
                    worker.is_told_to_stop = True
                    self.kill_worker(worker.pid, signal.SIGTERM)

    def handle_hup(self) -> None:
        """New workers for old ones. Their settings are those that the parent started with.

        One that is still starting is new: many signals in a row make no crowd of workers.
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
            ignore_newcomers(listener)
        super().stop(graceful)

    def _is_orphan(self) -> bool:
        services = services_of_this_node()
        return services is not None and not services.is_child_of_parent()

    def _workers(self) -> list[MoonhookWorker]:
        """From the oldest to the youngest."""
        return sorted(self.WORKERS.values(), key=lambda worker: worker.age)

    def _staying(self) -> list[MoonhookWorker]:
        return [each for each in self._workers() if not each.lifecycle.is_retiring]

    def wait_for_signals(self, timeout: float = 1.0) -> Any:
        """Wakes in time for the end, and soon while somebody is to be replaced."""
        if any(worker.lifecycle.is_retiring for worker in self._workers()):
            timeout = min(timeout, 0.2)
        if self._stop_at is not None:
            timeout = min(timeout, max(0.0, self._stop_at - time.monotonic()))
        return super().wait_for_signals(timeout)

"""The parent of all services: starts them, restarts those that die, and stops them together."""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

import structlog

from core.server.service_table import ServiceTable
from core.server.supervised_service import RestartPolicy, Service, SupervisedService

logger = structlog.get_logger(__name__)

STOP_GRACE_SECONDS = 5
POLL_SECONDS = 0.1
# See prctl(2).
_PR_SET_CHILD_SUBREAPER = 36


class Supervisor:
    """Runs services until a signal asks it to stop.

    Each service has a process group of its own, so that Ctrl-C reaches only the supervisor, which
    then stops them in order. The kernel sends each one SIGTERM if the supervisor is killed. The
    orphans of a dead service become children of the supervisor and are reaped here, as by the
    first process of a container.
    """

    def __init__(
        self,
        services: Sequence[Service],
        *,
        directory: Path,
        grace_seconds: float,
        policy: RestartPolicy | None = None,
        on_end: Callable[[int], None] = lambda process_id: None,
    ) -> None:
        """`on_end` is called with the id of each service or orphan that has ended."""
        self._on_end = on_end
        self._grace_seconds = grace_seconds + STOP_GRACE_SECONDS
        self._is_stopping = False
        table = ServiceTable.create([service.name for service in services])
        self._services = [
            SupervisedService(service, table, directory, policy or RestartPolicy())
            for service in services
        ]

    def run(self) -> int:
        """Returns the exit status: 0 after a signal, 1 if a service could not start to serve."""
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signal_number, self._request_stop)
        signal.signal(signal.SIGHUP, self._reload)
        _adopt_orphans()
        while not self._is_stopping and not any(each.has_failed for each in self._services):
            for each in self._services:
                each.check()
            time.sleep(POLL_SECONDS)
            self._reap()
        self._stop_all()
        return 1 if any(each.has_failed for each in self._services) else 0

    def _request_stop(self, signal_number: int, frame: FrameType | None) -> None:
        self._is_stopping = True

    def _reload(self, signal_number: int, frame: FrameType | None) -> None:
        for each in self._services:
            each.reload()

    def _reap(self) -> bool:
        """Collects every child that has ended, services and orphans; false if none is left."""
        own = {
            each.process.pid: each.process
            for each in self._services
            # The number of a process that was waited for may be an orphan's by now.
            if each.process is not None and each.process.returncode is None
        }
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return False
            if ended is None:
                return True
            if ended.si_pid in own:
                own[ended.si_pid].poll()
            else:
                os.waitpid(ended.si_pid, 0)
            try:
                self._on_end(ended.si_pid)
            except OSError as error:
                logger.error("Cannot clean up after a process", error=str(error))  # noqa: TRY400

    def _stop_all(self) -> None:
        """Terminates every service, waits, and kills those that are left."""
        for each in self._services:
            each.terminate()
        deadline = time.monotonic() + self._grace_seconds
        while self._has_survivors() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        for each in self._services:
            each.kill()
        # Fork servers end by themselves after their web worker.
        deadline = time.monotonic() + STOP_GRACE_SECONDS
        while self._reap() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)

    def _has_survivors(self) -> bool:
        """Whether any process of a service's group still runs."""
        self._reap()
        return any([each.has_survivors() for each in self._services])  # noqa: C419  (asks all)


def _adopt_orphans() -> None:
    """Makes the children of a dead service children of this process (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)

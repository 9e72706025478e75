"""The parent of all services: forks them, restarts those that die, and stops them together."""

import os
import signal
import time
from collections.abc import Callable, Sequence

import structlog

from core.node_state import ServiceTable, start_draining
from core.server.supervised_service import RestartPolicy, Service, SupervisedService, adopt_orphans

logger = structlog.get_logger(__name__)

STOP_GRACE_SECONDS = 5
POLL_SECONDS = 0.1
# A death is noticed at once; that a service is stable, or leftovers stay, a little later.
_CHECK_SECONDS = 1.0
_STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM}
_SIGNALS = _STOP_SIGNALS | {signal.SIGHUP, signal.SIGCHLD}


class Supervisor:
    """Runs services until a signal asks it to stop.

    The process has only one thread and no connections, because its services are forks of it. The
    kernel sends each one SIGTERM if the supervisor is killed. The orphans of a dead service become
    children of the supervisor and are reaped here, as by the first process of a container.
    """

    def __init__(
        self,
        services: Sequence[Service],
        *,
        grace_seconds: float,
        policy: RestartPolicy | None = None,
        on_end: Callable[[int], None] = lambda process_id: None,
    ) -> None:
        """`on_end` is called with the id of each service or orphan that has ended."""
        self._on_end = on_end
        self._grace_seconds = grace_seconds + STOP_GRACE_SECONDS
        self._listeners = [each for service in services for each in service.listeners]
        table = ServiceTable([service.name for service in services])
        self._services = [
            SupervisedService(
                service,
                table,
                policy or RestartPolicy(),
                sockets_of_others=set(self._listeners) - set(service.listeners),
            )
            for service in services
        ]

    def run(self) -> int:
        """Returns the exit status: 0 after a signal, 1 if a service could not start to serve."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        adopt_orphans()
        received = None
        while received not in _STOP_SIGNALS and not self._has_failed():
            for each in self._services:
                each.check()
            received = _wait_for_signal(_SIGNALS, self._seconds_until_check())
            self._reap()
            if received == signal.SIGHUP:
                for each in self._services:
                    each.reload()
        self._stop_all()
        return 1 if self._has_failed() else 0

    def _has_failed(self) -> bool:
        return any(each.has_failed for each in self._services)

    def _seconds_until_check(self) -> float:
        now = time.monotonic()
        starts = [each.next_start_at - now for each in self._services if each.next_start_at > now]
        return min([_CHECK_SECONDS, *starts])

    def _reap(self) -> bool:
        """Collects every child that has ended, services and orphans; false if none is left."""
        while True:
            try:
                process_id, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if not process_id:
                return True
            for each in self._services:
                each.note_end(process_id, os.waitstatus_to_exitcode(status))
            try:
                self._on_end(process_id)
            except OSError as error:
                logger.error("Cannot clean up after a process", error=str(error))  # noqa: TRY400

    def _stop_all(self) -> None:
        """Terminates every service, waits, and kills those that are left."""
        start_draining()
        # The web server, which has copies of its own, decides how long it listens.
        for listener in self._listeners:
            listener.close()
        for each in self._services:
            each.terminate()
        self._reap_while(self._has_survivors, self._grace_seconds)
        for each in self._services:
            each.kill()
        # Fork servers end by themselves after their web worker.
        self._reap_while(self._reap, STOP_GRACE_SECONDS)

    def _has_survivors(self) -> bool:
        return any(each.has_survivors() for each in self._services)

    def _reap_while(self, condition: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._reap() and condition() and time.monotonic() < deadline:
            _wait_for_signal({signal.SIGCHLD}, POLL_SECONDS)


def _wait_for_signal(signals: set[signal.Signals], seconds: float) -> int | None:
    received = signal.sigtimedwait(signals, max(0, seconds))
    return None if received is None else received.si_signo

"""gunicorn and the background worker under one parent: they start, stop and fail together."""

import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

logger = logging.getLogger(__name__)

STOP_GRACE_SECONDS = 5
POLL_SECONDS = 0.2


class Service(NamedTuple):
    name: str
    command: Sequence[str]
    reload_signal: signal.Signals | None = None
    """What it is sent when the supervisor is sent SIGHUP."""


class Supervisor:
    """Runs services until one ends or a signal asks for the end.

    Each gets a process group of its own, so that Ctrl-C reaches only the supervisor, which then
    stops them in order; and each is sent SIGTERM by the kernel should the supervisor be killed.
    """

    def __init__(
        self, services: Sequence[Service], *, directory: Path, grace_seconds: float
    ) -> None:
        self._services = services
        self._directory = directory
        self._grace_seconds = grace_seconds + STOP_GRACE_SECONDS
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._stop_asked = False

    def run(self) -> int:
        """The exit status: 0 after a signal, 1 when a service ended by itself."""
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signal_number, self._ask_to_stop)
        signal.signal(signal.SIGHUP, self._reload)
        for service in self._services:
            self._processes[service.name] = self._start(service)
        ended = self._wait_for_an_end()
        self._stop_all()
        if ended is None:
            return 0
        status = self._processes[ended].returncode
        logger.critical("The %s ended with status %s; stopped.", ended, status)
        return 1

    def _ask_to_stop(self, signal_number: int, frame: FrameType | None) -> None:
        self._stop_asked = True

    def _reload(self, signal_number: int, frame: FrameType | None) -> None:
        for service in self._services:
            process = self._processes.get(service.name)
            if process is not None and service.reload_signal is not None:
                process.send_signal(service.reload_signal)

    def _start(self, service: Service) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            service.command,
            cwd=self._directory,
            process_group=0,
            preexec_fn=_end_with_parent,  # noqa: PLW1509  (there are no threads here)
        )

    def _wait_for_an_end(self) -> str | None:
        """The name of a service that ended by itself, or ``None`` when asked to stop."""
        while not self._stop_asked:
            for name, process in self._processes.items():
                if process.poll() is not None:
                    return name
            time.sleep(POLL_SECONDS)
        return None

    def _stop_all(self) -> None:
        """Asks every service to end, waits, and kills what has not."""
        for process in self._processes.values():
            if process.poll() is None:
                process.terminate()
            else:
                _signal_group(process, signal.SIGTERM)
        deadline = time.monotonic() + self._grace_seconds
        while self._has_survivors() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        for process in self._processes.values():
            _signal_group(process, signal.SIGKILL)
            process.wait()

    def _has_survivors(self) -> bool:
        """Whether a service, or anything that it started in its group, still runs."""
        for process in self._processes.values():
            process.poll()
        return any(_signal_group(process, 0) for process in self._processes.values())


def _signal_group(process: subprocess.Popen[bytes], signal_number: int) -> bool:
    """Signals all of a service; false when nothing of it is left."""
    try:
        os.killpg(process.pid, signal_number)
    except ProcessLookupError:
        return False
    return True


def _end_with_parent() -> None:
    """PR_SET_PDEATHSIG, where there is one (Linux): see prctl(2)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)

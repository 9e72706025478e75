"""Runs a supervisor of small services in a process that accepts signals and adopts orphans."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import structlog

from core.node_state import note_that_this_service_serves
from core.server.supervised_service import RestartPolicy, Service
from core.server.supervisor import Supervisor
from tests.eventually import eventually

ROOT = Path(__file__).resolve().parent.parent


class SupervisorProcess:
    """``services`` holds each service's ``name`` and what it does; ``policy`` the RestartPolicy.

    After ``forks`` forks, the system refuses more.
    """

    def __init__(
        self, services: list[dict[str, Any]], *, forks: int = sys.maxsize, **policy: Any
    ) -> None:
        self._arguments = json.dumps({"services": services, "policy": policy, "forks": forks})
        self._printed: list[str] = []
        self._logged: list[str] = []
        self.process: subprocess.Popen[str]

    @contextmanager
    def running(self) -> Iterator["SupervisorProcess"]:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.supervisor_process", self._arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        streams = ((self.process.stdout, self._printed), (self.process.stderr, self._logged))
        readers = [threading.Thread(target=_collect, args=each, daemon=True) for each in streams]
        for reader in readers:
            reader.start()
        try:
            yield self
        finally:
            self.stop()
            for reader in readers:
                reader.join(30)

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        """Sends the signal and returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        return self.process.wait(timeout=60)

    def events(self, event: str, service: str | None = None) -> list[dict[str, Any]]:
        """Returns the logged events of that name, of one service or of all."""
        logged = [json.loads(line) for line in list(self._logged)]
        return [
            each
            for each in logged
            if each["event"] == event and service in {None, each.get("service")}
        ]

    def printed(self, word: str) -> list[int]:
        """Returns the numbers that the services printed after the word."""
        return [int(line.split()[1]) for line in list(self._printed) if line.startswith(f"{word} ")]

    def wait_for(self, word: str, times: int = 1) -> list[int]:
        eventually(lambda: len(self.printed(word)) >= times)
        return self.printed(word)


def _collect(stream: IO[str], lines: list[str]) -> None:
    with stream:
        lines.extend(stream)


def main() -> None:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    arguments = json.loads(sys.argv[1])
    services = [
        Service(
            each["name"],
            partial(run, each),
            reload_signal=each.get("reload_signal"),
            attempts_to_serve=each.get("attempts_to_serve"),
        )
        for each in arguments["services"]
    ]
    limit_forks(arguments["forks"])
    policy = RestartPolicy(**arguments["policy"])
    sys.exit(Supervisor(services, grace_seconds=0, policy=policy).run())


def run(service: dict[str, Any]) -> None:
    """Becomes its program, or does in Python what it says."""
    if service.get("serves"):
        note_that_this_service_serves()
        sys.stdout.write(f"serves {os.getpid()}\n")
        sys.stdout.flush()
    if "raises" in service:
        raise ValueError(service["raises"])
    if "shell" in service:
        os.execvp("sh", ["sh", "-c", service["shell"]])


def limit_forks(count: int) -> None:
    fork, forks = os.fork, iter(range(count))

    def limited() -> int:
        if next(forks, None) is None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return fork()

    os.fork = limited


if __name__ == "__main__":
    main()

"""Runs a supervisor of small services in a process that accepts signals and adopts orphans."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import structlog

from core.server.supervised_service import RestartPolicy, Service
from core.server.supervisor import Supervisor
from tests.eventually import eventually

ROOT = Path(__file__).resolve().parent.parent


class SupervisorProcess:
    """``services`` holds the arguments of each ``Service``; ``policy`` those of RestartPolicy."""

    def __init__(self, services: list[dict[str, Any]], **policy: Any) -> None:
        self._arguments = json.dumps({"services": services, "policy": policy})
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
        processors=[structlog.processors.add_log_level, structlog.processors.JSONRenderer()],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    arguments = json.loads(sys.argv[1])
    services = [
        Service(
            each["name"],
            each.get("program") or ["sh", "-c", each["shell"]],
            signal.Signals(each["reload_signal"]) if "reload_signal" in each else None,
            each.get("attempts_to_serve"),
        )
        for each in arguments["services"]
    ]
    policy = RestartPolicy(**arguments["policy"])
    supervisor = Supervisor(services, directory=ROOT, grace_seconds=0, policy=policy)
    sys.exit(supervisor.run())


if __name__ == "__main__":
    main()

"""The flooded node and the helper processes; each is stopped by its process id."""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks.comparison.servers import ROOT, free_port, serving
from benchmarks.floods.cast import Cast, Request
from benchmarks.floods.probing import ask

READY_SECONDS = 60
# A little less than a script's call may take.
SLOW_ANSWER_SECONDS = 4.5


class Node:
    """Runs `manage.py serve`: web server and jobs runner with default settings.

    Except that scripts may call loopback, and generated runs are kept.
    """

    def __init__(self, directory: Path, database_url: str) -> None:
        self._log = directory / "server.log"
        self.port = free_port()
        inherited = {
            name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ
        }
        self._environment = inherited | {
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "MOONHOOK_DATA_DIR": str(directory),
            "PORT": str(self.port),
            "LOG_FORMAT": "json",
            "HTTP_ALLOWED_NETWORKS": "127.0.0.1/32",
            "RUNS_KEPT_PER_ORGANISATION": "0",
            **({"DATABASE_URL": database_url} if database_url else {}),
        }

    def seed(self, runs: int) -> Cast:
        seeding = [sys.executable, "-m", "benchmarks.floods.seeding", "--runs", str(runs)]
        finished = subprocess.run(
            seeding,
            cwd=ROOT,
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return Cast.from_json(finished.stdout)

    @contextmanager
    def running(self) -> Iterator[None]:
        command = [sys.executable, "manage.py", "serve", "--no-demo"]
        environment = self._environment
        with serving("Moonhook", command, port=self.port, log=self._log, environment=environment):
            self._wait_until_ready()
            yield

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while ask(self.port, Request("GET", "/readyz", {}), 5) != http.client.OK:
            if time.monotonic() > deadline:
                raise TimeoutError(f"not ready after {READY_SECONDS} s: {self._log.read_text()}")
            time.sleep(0.2)


class HelperFailedError(Exception):
    """A process of the benchmark failed, not the node."""


class Helper:
    """A module of the benchmark in its own process; takes a job and prints JSON."""

    def __init__(self, module: str, *arguments: str, job: str) -> None:
        # In a group of its own: Ctrl-C is for the parent, which stops it.
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"benchmarks.floods.{module}", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        self._job = job

    def send_job(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(self._job)
        self._process.stdin.close()
        self._process.stdin = None

    def result(self, timeout_seconds: float) -> Any:
        """Raises ``HelperFailedError`` after printing the reason."""
        output, _ = self._process.communicate(timeout=timeout_seconds)
        if self._process.returncode != 0:
            raise HelperFailedError(self._process.args)
        return json.loads(output)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


@contextmanager
def helper(module: str, *arguments: str, job: str) -> Iterator[Helper]:
    """Runs the helper; stops it when the block ends."""
    started = Helper(module, *arguments, job=job)
    try:
        started.send_job()
        yield started
    finally:
        started.stop()


class _SlowHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(SLOW_ANSWER_SECONDS)
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@contextmanager
def slow_server() -> Iterator[str]:
    """Yields the address of a slow server on loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _SlowHandler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()

"""`manage.py run_jobs` as a process of its own, on the tests' database."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.conf import settings
from django.db import connection

ROOT = Path(__file__).resolve().parent.parent


class JobsRunner:
    """``output`` is what it wrote so far, while it is running. For tests that commit."""

    def __init__(self, **environment: str) -> None:
        peppers = ",".join(f"{version}:{key.hex()}" for version, key in settings.PEPPERS.items())
        self._environment = {
            **os.environ,
            "DATABASE_URL": database_url(),
            "MOONHOOK_PEPPERS": peppers,
            "SECRET_KEY": settings.SECRET_KEY,
            **environment,
        }
        self._log: IO[str]
        self.process: subprocess.Popen[str]

    @contextmanager
    def running(self) -> Iterator["JobsRunner"]:
        with tempfile.TemporaryFile(mode="w+") as self._log:
            self._start()
            try:
                yield self
            finally:
                self.kill()

    def _start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "run_jobs"],
            cwd=ROOT,
            env=self._environment,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def kill(self) -> None:
        """As the machine's end would: nothing is cleaned up."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=60)

    @property
    def output(self) -> str:
        self._log.seek(0)
        return self._log.read()


def database_url() -> str:
    database = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{database['NAME']}"
    password = f":{database['PASSWORD']}" if database["PASSWORD"] else ""
    place = f"{database['HOST'] or '127.0.0.1'}:{database['PORT'] or 5432}"
    return f"postgres://{database['USER']}{password}@{place}/{database['NAME']}"

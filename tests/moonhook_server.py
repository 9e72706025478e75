"""Moonhook started by `manage.py serve` with its own data directory."""

import atexit
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from tests.commands import ROOT, manage
from tests.servers import free_port

START_SECONDS = 300
# As random as production asks for, and the same in every test.
PRODUCTION_SECRETS = {
    "SECRET_KEY": "0123456789abcdefghijklmnopqrstuvwxyz" * 2,
    "MOONHOOK_PEPPERS": "1:" + bytes(range(32)).hex(),
}


@cache
def _prepared() -> Path:
    """The data directory of what is made once a process."""
    directory = Path(tempfile.mkdtemp(prefix="moonhook-prepared-"))
    atexit.register(shutil.rmtree, directory)
    return directory


@cache
def _migrated_database() -> Path:
    migrated = manage(_prepared(), "migrate", "-v0")
    assert migrated.returncode == 0, migrated.stderr
    return _prepared() / "moonhook.sqlite3"


@cache
def _static_files() -> Path:
    collected = manage(_prepared(), "collectstatic", "--no-input", "-v0")
    assert collected.returncode == 0, collected.stderr
    return _prepared() / "static"


def prepare_database(data_dir: Path) -> None:
    """Puts a migrated SQLite database there, unless there is one."""
    database = data_dir / "moonhook.sqlite3"
    if not database.exists():
        data_dir.mkdir(parents=True, exist_ok=True)
        shutil.copy(_migrated_database(), database)


class MoonhookServer:
    """A running `manage.py serve`; ``output`` collects what it prints.

    Unless ``is_prepared`` is false, it finds its SQLite database migrated, and its static files
    collected, which together take longer than all else that a first start does.
    """

    command = ("manage.py", "serve")
    ready_path = "/readyz"

    def __init__(
        self,
        data_dir: Path,
        *serve_arguments: str,
        directory: Path = ROOT,
        is_prepared: bool = True,
        **environment: str,
    ) -> None:
        self._data_dir = data_dir
        self._serve_arguments = serve_arguments
        self._directory = directory
        self._is_prepared = is_prepared
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.environment = kept | {
            "MOONHOOK_DATA_DIR": str(data_dir),
            "PORT": str(self.port),
            # Others migrate for minutes on a machine that is busy with something else.
            "DATABASE_WAIT": "600",
            **environment,
        }
        self._lines: list[str] = []
        self._process: subprocess.Popen[str] | None = None

    @property
    def output(self) -> str:
        return "".join(self._lines)

    @property
    def process(self) -> subprocess.Popen[str]:
        assert self._process is not None
        return self._process

    @contextmanager
    def running(self) -> Iterator["MoonhookServer"]:
        self.start()
        try:
            self.wait_until_ready()
            yield self
        finally:
            self.stop()

    def start(self) -> None:
        if self._is_prepared:
            self._prepare()
        self._process = subprocess.Popen(
            [sys.executable, *self.command, *self._serve_arguments],
            cwd=self._directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        threading.Thread(target=self._collect, daemon=True).start()

    def _prepare(self) -> None:
        self.environment.setdefault("STATIC_ROOT", str(_static_files()))
        if "DATABASE_URL" not in self.environment:
            prepare_database(self._data_dir)

    def _collect(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stdout:
            for line in stdout:
                self._lines.append(line)

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            time.sleep(0.1)

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.url}{self.ready_path}", timeout=5) as response:
                return bool(response.status == 200)
        except HTTPError as refusal:
            refusal.close()
            return False
        except (URLError, ConnectionError, TimeoutError):
            return False

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        """Sends the signal and returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        return self.process.wait(timeout=120)

    def manage(self, *arguments: str) -> str:
        """Standard output of a `manage.py` command under the same environment."""
        finished = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    def printed(self, pattern: str) -> str:
        """The first group of the pattern in what was printed."""
        found = re.search(pattern, self.output)
        assert found is not None, self.output
        return found[1]


class WebServer(MoonhookServer):
    """The web server by itself: nothing has made or migrated its database."""

    command = ("-m", "tests.web_server")
    ready_path = "/healthz"

    def __init__(self, data_dir: Path, **environment: str) -> None:
        super().__init__(
            data_dir, is_prepared=False, DJANGO_SETTINGS_MODULE="config.settings", **environment
        )

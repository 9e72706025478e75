"""A real Moonhook server, started from this repository with a data directory of its own."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("MOONHOOK_SERVER_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
_START_SECONDS = 300


@dataclass(frozen=True)
class Key:
    key: str
    secret: str


def _processes_of_session(leader: int) -> list[int]:
    """The leader first, so that it starts none of the others again."""
    found = [leader]
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # After the name in parentheses: state, parent, group, session.
            session = stat.read_text().rpartition(")")[2].split()[3]
            if int(session) == leader and int(stat.parent.name) != leader:
                found.append(int(stat.parent.name))
    return found


class Server:
    def __init__(self, directory: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._process: subprocess.Popen[str] | None = None
        self.url = f"http://127.0.0.1:{self.port}"
        self._directory = directory
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self._environment = kept | {
            "MOONHOOK_DATA_DIR": str(directory),
            "PORT": str(self.port),
            "PUBLIC_URL": self.url,
        }

    @contextmanager
    def running(self) -> Iterator["Server"]:
        self.start()
        try:
            with self._administrator() as self._process:
                yield self
        finally:
            self.stop()

    def start(self) -> None:
        """Starts it on the same address and data, and waits until it is ready."""
        with (self._directory / "log").open("w") as log:
            self._server = subprocess.Popen(
                [PYTHON, "manage.py", "serve"],
                cwd=ROOT,
                env=self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._wait_until_ready(self._server)

    def stop(self) -> None:
        self._server.send_signal(signal.SIGTERM)
        self._server.wait(timeout=60)

    def kill(self) -> None:
        """Kills every process of it at once, as a machine that loses power."""
        for pid in _processes_of_session(self._server.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._server.wait(timeout=60)

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", timeout=5):
                    return
            except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
                if isinstance(error, urllib.error.HTTPError):
                    error.close()
                log = (self._directory / "log").read_text()
                assert process.poll() is None, log
                assert time.monotonic() < deadline, log
                time.sleep(0.1)

    @contextmanager
    def _administrator(self) -> Iterator["subprocess.Popen[str]"]:
        with subprocess.Popen(
            [PYTHON, str(Path(__file__).with_name("administrator.py"))],
            cwd=ROOT,
            env=self._environment
            | {"DJANGO_SETTINGS_MODULE": "config.settings", "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            yield process

    def _ask(self, command: object) -> str:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(command) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        assert answer, f"{command} failed"
        return str(json.loads(answer))

    def manage(self, *arguments: str) -> str:
        """What a `manage.py` command prints."""
        return self._ask({"arguments": arguments})

    def approve(self, organisation: str, email: str, code: str) -> None:
        self._ask({"approve": {"organisation": organisation, "email": email, "code": code}})

    def make_organisation(self, name: str) -> str:
        """The id of a new organisation."""
        return str(json.loads(self.manage("create_organisation", name, "--json"))["id"])

    def make_key(self, organisation: str, scopes: str = "All") -> Key:
        given = ("--organisation", organisation, "--name", "cli", "--scopes", scopes)
        made = json.loads(self.manage("create_api_key", *given, "--json"))
        return Key(made["key"], made["secret"])

"""Moonhook with its default settings, and objects to call."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.comparison.requests import Request
from benchmarks.comparison.servers import ROOT, Server, Size, free_port, serving

GENERATIONS = ("parent", "web server", "web workers", "fork servers", "sandboxes")


@dataclass(frozen=True)
class Fixtures:
    """Objects to call, one hook for each organisation; created by ``fixtures.py``."""

    workers: int
    threads: int
    hooks: list[str]
    wrong_hook: str
    signed_hook: str
    looping_hook: str
    api_key_logins: list[dict[str, str]]
    device_login: dict[str, str]
    emails_with_code: list[str]

    @property
    def size(self) -> Size:
        return Size(self.workers, self.threads)


@dataclass(frozen=True)
class Moonhook:
    server: Server
    environment: dict[str, str]
    root: Path

    def make_fixtures(self, *, tenants: int = 1, users: int = 0) -> Fixtures:
        # An earlier version's objects are made by this version's file, with its own flows.
        file = ROOT / "benchmarks/comparison/fixtures.py"
        return Fixtures(**self._printed_by("-P", file, "--tenants", tenants, "--users", users))

    def printed_by(self, module: str, *arguments: object) -> Any:
        """The JSON that a module of the benchmark prints in the server's environment."""
        return self._printed_by("-m", module, *arguments)

    def _printed_by(self, *arguments: object) -> Any:
        finished = subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=self.root,
            env=self.environment | {"PYTHONPATH": str(self.root)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return json.loads(finished.stdout)

    def open_session(self, login: dict[str, str]) -> str:
        """Opens a session and returns its bearer token."""
        _, _, body = Request.posting(f"{self.server.url}/session", login).send()
        token: str = json.loads(body)["token"]
        return token


@contextmanager
def moonhook(
    name: str,
    directory: Path,
    *,
    root: Path = ROOT,
    database_url: str = "",
    **environment: str,
) -> Iterator[Moonhook]:
    """Runs `manage.py serve web` of the checkout at ``root``, logging to a file.

    On SQLite without a database address.
    """
    port = free_port()
    data_dir = Path(tempfile.mkdtemp(prefix="moonhook-", dir=directory))
    variables = dict(os.environ)
    variables.pop("DATABASE_URL", None)
    variables |= {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "MOONHOOK_DATA_DIR": str(data_dir),
        "PORT": str(port),
        "LOG_FORMAT": "json",
        **({"DATABASE_URL": database_url} if database_url else {}),
        **environment,
    }
    with serving(
        name,
        [sys.executable, "manage.py", "serve", "web", "--no-demo"],
        port=port,
        log=data_dir / "server.log",
        environment=variables,
        directory=root,
        generations=GENERATIONS,
    ) as server:
        yield Moonhook(server, variables, root)

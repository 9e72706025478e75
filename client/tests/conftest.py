"""One server for all tests; each test has an organisation, a home and a folder of its own."""

import atexit
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from server import Key, Server

MOONHOOK = str(Path(sys.executable).with_name("moonhook"))
_numbers = itertools.count(1)


@cache
def _preloaded() -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("preloaded.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(process.communicate)
    return process


class Client:
    """The installed command, with a home directory and a working directory of its own."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.home = home
        self.folder = folder
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
            "LANG": "C.UTF-8",
        }

    @property
    def configuration(self) -> Path:
        return self.home / "config" / "moonhook"

    def run(
        self, *arguments: str, stdin: str = "", **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        """Runs it in a fork of a process that has imported it already."""
        files = [self.home / name for name in ("stdin", "stdout", "stderr")]
        self.home.mkdir(exist_ok=True)
        files[0].write_text(stdin)
        command = {
            "arguments": arguments,
            "folder": str(self.folder),
            "environment": self.environment | environment,
            "files": [str(file) for file in files],
        }
        process = _preloaded()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(command) + "\n")
        process.stdin.flush()
        status = int(process.stdout.readline())
        return subprocess.CompletedProcess(
            list(arguments), status, files[1].read_text(), files[2].read_text()
        )

    def start(self, *arguments: str, stdout: int = subprocess.PIPE) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [MOONHOOK, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def ok(self, *arguments: str, stdin: str = "", **environment: str) -> str:
        done = self.run(*arguments, stdin=stdin, **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def json(self, *arguments: str, stdin: str = "", **environment: str) -> Any:
        return json.loads(self.ok(*arguments, "--json", stdin=stdin, **environment))

    def fails(self, status: int, *arguments: str, stdin: str = "", **environment: str) -> str:
        """What it prints, on either stream."""
        done = self.run(*arguments, stdin=stdin, **environment)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def log_in(self, server: Server, key: Key, *options: str) -> None:
        self.ok("login", server.url, "--api-key", *options, stdin=f"{key.key}\n{key.secret}\n")

    def write(self, path: str, text: str) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def read(self, path: str) -> str:
        return (self.folder / path).read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server")).running() as running:
        yield running


@pytest.fixture
def client(tmp_path: Path) -> Client:
    folder = tmp_path / "folder"
    folder.mkdir()
    return Client(tmp_path / "home", folder)


@pytest.fixture
def organisation_name() -> str:
    return f"Acme {next(_numbers)}"


@pytest.fixture
def organisation(server: Server, organisation_name: str) -> str:
    return server.make_organisation(organisation_name)


@pytest.fixture
def key(server: Server, organisation: str) -> Key:
    return server.make_key(organisation)


@pytest.fixture
def logged_in(client: Client, server: Server, key: Key) -> Client:
    client.log_in(server, key)
    return client


@pytest.fixture
def other_client(tmp_path: Path, server: Server, key: Key) -> Client:
    """A colleague with the same key and a folder of their own."""
    folder = tmp_path / "other"
    folder.mkdir()
    colleague = Client(tmp_path / "other-home", folder)
    colleague.log_in(server, key)
    return colleague

"""A PostgreSQL and a Redis server that a test may stop, freeze and restart."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis

from tests.eventually import eventually
from tests.process_tree import family_of
from tests.servers import free_port


class PrivatePostgres:
    """A cluster in a directory of its own; ``url`` is its database."""

    def __init__(self, directory: Path, programs: Path) -> None:
        self.port = free_port()
        self.url = f"postgres://postgres@127.0.0.1:{self.port}/postgres"
        self._directory = directory
        self._programs = programs

    def create(self) -> None:
        self._run("initdb", "--auth=trust", "-U", "postgres", "--no-sync")
        self.start()

    def start(self) -> None:
        options = f"-h 127.0.0.1 -p {self.port} -k {self._directory} -c max_connections=200"
        log = str(self._directory / "log")
        self._run("pg_ctl", "-w", "-l", log, "-o", f"{options} -c fsync=off", "start")

    def stop(self) -> None:
        """At once, as a crash does: connections are cut in the middle of what they do."""
        self._run("pg_ctl", "-m", "immediate", "stop")

    def freeze(self) -> None:
        """Its connections stay, and nobody answers on them."""
        for pid in self._family():
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in self._family():
            os.kill(pid, signal.SIGCONT)

    def become_read_only(self) -> None:
        """For all transactions that begin from now on, as after a failover."""
        self._set_read_only("on")

    def become_writable(self) -> None:
        self._set_read_only("off")

    def _set_read_only(self, value: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            statement = f"ALTER SYSTEM SET default_transaction_read_only = {value}"
            connection.execute(statement.encode())
            connection.execute("SELECT pg_reload_conf()")
        eventually(lambda: self.ask("SHOW default_transaction_read_only") == value)

    def ask(self, query: str) -> object:
        """The only value of the answer."""
        with psycopg.connect(self.url) as connection:
            row = connection.execute(query).fetchone()  # type: ignore[arg-type]
        return row[0] if row else None

    def _family(self) -> list[int]:
        return family_of(int((self._directory / "postmaster.pid").read_text().split()[0]))

    def _run(self, program: str, *arguments: str) -> None:
        """As the system's user postgres where this is root, which PostgreSQL refuses to be."""
        command = [str(self._programs / program), "-D", str(self._directory), *arguments]
        if os.getuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", timeout=60)


@contextmanager
def private_postgres() -> Iterator[PrivatePostgres]:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found:
        pytest.skip("there is no PostgreSQL server here to start")
    directory = Path(tempfile.mkdtemp(prefix="moonhook-postgres-"))
    if os.getuid() == 0:
        shutil.chown(directory, "postgres")
    server = PrivatePostgres(directory, found[-1])
    try:
        server.create()
        yield server
    finally:
        server.thaw()
        server.stop()
        shutil.rmtree(directory)


class PrivateRedis:
    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""],
            stdout=subprocess.DEVNULL,
            cwd="/",
        )
        eventually(self._answers)

    def stop(self) -> None:
        self.send_signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait(timeout=10)

    def freeze(self) -> None:
        self.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.send_signal(signal.SIGCONT)

    def send_signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _answers(self) -> bool:
        try:
            return bool(redis.Redis.from_url(self.url).ping())
        except redis.RedisError:
            return False


@contextmanager
def private_redis() -> Iterator[PrivateRedis]:
    if shutil.which("redis-server") is None:
        pytest.skip("there is no redis-server here to start")
    server = PrivateRedis()
    server.start()
    try:
        yield server
    finally:
        server.thaw()
        server.stop()

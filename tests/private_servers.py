"""A PostgreSQL server that a test may stop, freeze and restart."""

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

from tests.eventually import eventually
from tests.process_tree import family_of, is_alive, send
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

    def create_standby_of(self, other: "PrivatePostgres") -> None:
        source = ("-h", "127.0.0.1", "-p", str(other.port), "-U", "postgres")
        self._run("pg_basebackup", *source, "-R", "-X", "stream", "-c", "fast", "--no-sync")
        self.start()

    def follow(self, other: "PrivatePostgres") -> None:
        """Starts as a standby of the server that was its own standby."""
        settings = f"primary_conninfo = 'host=127.0.0.1 port={other.port} user=postgres'\n"
        with (self._directory / "postgresql.auto.conf").open("a") as file:
            file.write(settings)
        (self._directory / "standby.signal").touch()
        self.start()

    def promote(self) -> None:
        self._run("pg_ctl", "-w", "promote")

    def wait_for_each_commit_of_standbys(self) -> None:
        """From now on, a commit returns when a standby has it too."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
        count = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        eventually(lambda: self.ask(count) == 1)

    def start(self) -> None:
        options = f"-h 127.0.0.1 -p {self.port} -k {self._directory} -c max_connections=200"
        log = str(self._directory / "log")
        self._run("pg_ctl", "-w", "-l", log, "-o", f"{options} -c fsync=off", "start")

    def stop(self) -> None:
        """At once, as a crash does: connections are cut in the middle of what they do."""
        self._run("pg_ctl", "-m", "immediate", "stop")

    def stop_in_order(self) -> None:
        """After its standbys have everything."""
        self._run("pg_ctl", "-m", "fast", "stop")

    def kill(self) -> None:
        send(signal.SIGKILL, self._family())

    def is_running(self) -> bool:
        try:
            return is_alive(self._pid())
        except FileNotFoundError:
            return False

    def freeze(self) -> None:
        """Its connections stay, and nobody answers on them."""
        send(signal.SIGSTOP, self._family())

    def thaw(self) -> None:
        send(signal.SIGCONT, self._family())

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
        return family_of(self._pid())

    def _pid(self) -> int:
        return int((self._directory / "postmaster.pid").read_text().split()[0])

    def _run(self, program: str, *arguments: str) -> None:
        """As the system's user postgres where this is root, which PostgreSQL refuses to be."""
        command = [str(self._programs / program), "-D", str(self._directory), *arguments]
        if os.getuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", timeout=60)


@contextmanager
def private_postgres() -> Iterator[PrivatePostgres]:
    with _empty_cluster() as server:
        server.create()
        yield server


@contextmanager
def private_pair() -> Iterator[tuple[PrivatePostgres, PrivatePostgres]]:
    """A primary, and its synchronous standby."""
    with _empty_cluster() as primary, _empty_cluster() as standby:
        primary.create()
        standby.create_standby_of(primary)
        primary.wait_for_each_commit_of_standbys()
        yield primary, standby


@contextmanager
def _empty_cluster() -> Iterator[PrivatePostgres]:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found:
        pytest.skip("there is no PostgreSQL server here to start")
    directory = Path(tempfile.mkdtemp(prefix="moonhook-postgres-"))
    if os.getuid() == 0:
        shutil.chown(directory, "postgres")
    server = PrivatePostgres(directory, found[-1])
    try:
        yield server
    finally:
        if server.is_running():
            server.thaw()
            server.stop()
        shutil.rmtree(directory)

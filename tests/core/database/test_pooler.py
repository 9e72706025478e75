"""A connection pooler between a node and PostgreSQL: PgBouncer, in each of its modes."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection

from core.database.readiness import UnsuitableDatabase, wait_for_database
from tests.eventually import eventually
from tests.servers import free_port

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")

pytestmark = [
    pytest.mark.skipif(PGBOUNCER is None, reason="there is no pgbouncer here"),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL"),
    pytest.mark.django_db(transaction=True),
]

DROPS_OPTIONS = "ignore_startup_parameters = options"


@contextmanager
def pgbouncer(mode: str, *settings: str) -> Iterator[int]:
    """Its port."""
    database = connection.settings_dict
    port = free_port()
    directory = Path(tempfile.mkdtemp(prefix="moonhook-pgbouncer-"))
    (directory / "users").write_text(f'"{database["USER"]}" "{database["PASSWORD"]}"\n')
    configuration = directory / "pgbouncer.ini"
    server = f"host={database['HOST'] or '127.0.0.1'} port={database['PORT'] or 5432}"
    lines = [
        "[databases]",
        f"* = {server}",
        "[pgbouncer]",
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =",
        f"auth_type = trust\nauth_file = {directory}/users\npool_mode = {mode}",
        *settings,
    ]
    configuration.write_text("\n".join([*lines, ""]))
    command = [str(PGBOUNCER), "-q", str(configuration)]
    if os.getuid() == 0:
        # It refuses to be root.
        shutil.chown(directory, "postgres")
        command = ["runuser", "-u", "postgres", "--", *command]
    process = subprocess.Popen(command, cwd="/", stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: is_open(port))
        yield port
    finally:
        process.terminate()
        process.wait(60)
        shutil.rmtree(directory)


def is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def start(port: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a starting node says that would connect to this port."""
    said: list[str] = []
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "HOST", "127.0.0.1")
        patch.setitem(connection.settings_dict, "PORT", str(port))
        wait_for_database(seconds=0, say=said.append)
    return said


@pytest.mark.parametrize("settings", [(), (DROPS_OPTIONS,), ("server_round_robin = 1",)])
def test_a_pooler_in_transaction_mode_is_refused(
    settings: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        pgbouncer("transaction", *settings) as port,
        pytest.raises(UnsuitableDatabase, match="pooler in transaction mode"),
    ):
        start(port, monkeypatch)


@pytest.mark.parametrize("settings", [(), (DROPS_OPTIONS,)])
def test_a_pooler_that_drops_the_limits_of_statements_is_refused(
    settings: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        pgbouncer("session", *settings) as port,
        pytest.raises(UnsuitableDatabase, match="does not pass on the limits"),
    ):
        start(port, monkeypatch)


def test_a_pooler_in_session_mode_with_limits_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    name = connection.ops.quote_name(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {name} SET statement_timeout = '9s'")
        try:
            with pgbouncer("session", DROPS_OPTIONS) as port:
                said = start(port, monkeypatch)
        finally:
            cursor.execute(f"ALTER DATABASE {name} RESET statement_timeout")

    assert said == []


def test_postgresql_itself_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    port = int(connection.settings_dict["PORT"] or 5432)

    assert start(port, monkeypatch) == []

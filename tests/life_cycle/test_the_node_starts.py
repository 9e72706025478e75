"""A node starts before its database, together with other nodes, and as one of its services."""

import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.eventually import eventually
from tests.life_cycle.processes import services_of
from tests.life_cycle.relay import relay
from tests.moonhook_server import ROOT, MoonhookServer
from tests.postgresql import URL, empty_database, needs_postgresql, url_of
from tests.servers import free_port
from tests.sessions import call

pytestmark = pytest.mark.slow

NO_LOGIN = "moonhook:very-secret"
NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}


def test_a_database_that_never_answers_is_a_failed_start(tmp_path: Path) -> None:
    port = free_port()
    server = MoonhookServer(
        tmp_path,
        DATABASE_URL=f"postgres://{NO_LOGIN}@127.0.0.1:{port}/moonhook",
        DATABASE_WAIT="1",
    )
    server.start()
    status = server.process.wait(timeout=60)
    address = f"the database at 127.0.0.1:{port}: connection refused"
    eventually(lambda: "Gave up" in server.output)

    assert status == 1
    assert server.output.count(f"Waiting for {address}") == 1
    assert f"Gave up after 1 seconds of waiting for {address}" in server.output
    assert "very-secret" not in server.output
    assert "Traceback" not in server.output


def is_supervised(server: MoonhookServer) -> bool:
    """Whether its service has been started: before, a signal ends the start itself."""
    return "Moonhook: jobs" in server.output and bool(services_of(server, "jobs runner"))


@needs_postgresql
def test_a_start_continues_when_the_database_responds(tmp_path: Path) -> None:
    port = free_port()
    target = urlsplit(URL)
    with empty_database() as name:
        server = MoonhookServer(tmp_path, "jobs", DATABASE_URL=url_of(name, port=port))
        server.start()
        eventually(lambda: "Waiting for the database" in server.output)
        with relay(port, (target.hostname or "127.0.0.1", target.port or 5432)):
            eventually(lambda: is_supervised(server))
            status = server.stop()

    assert status == 0
    assert "Continuing." in server.output


@needs_postgresql
def test_one_of_several_starting_nodes_migrates(tmp_path: Path) -> None:
    with empty_database() as name:
        servers = [
            MoonhookServer(tmp_path / str(number), "jobs", DATABASE_URL=url_of(name))
            for number in range(3)
        ]
        for server in servers:
            server.start()
        for server in servers:
            eventually(lambda server=server: is_supervised(server))
        statuses = [server.stop() for server in servers]

    assert statuses == [0, 0, 0]
    assert [server.output for server in servers if "Error" in server.output] == []


def test_a_node_without_rights_waits_for_one_that_migrates(tmp_path: Path) -> None:
    server = MoonhookServer(tmp_path, "jobs", "--no-migrate", is_prepared=False)
    server.start()
    eventually(lambda: "Waiting for manage.py migrate: the database's schema" in server.output)
    server.manage("migrate", "--verbosity", "0")
    eventually(lambda: "Moonhook: jobs" in server.output)

    assert server.stop() == 0


def test_a_schema_that_stays_outdated_fails_the_start(tmp_path: Path) -> None:
    server = MoonhookServer(tmp_path, "jobs", "--no-migrate", is_prepared=False, DATABASE_WAIT="1")
    server.start()

    assert server.process.wait(timeout=60) == 1
    eventually(lambda: "Gave up after 1 seconds of waiting for manage.py migrate" in server.output)


def test_a_database_from_before_the_first_release_is_a_failed_start(tmp_path: Path) -> None:
    server = MoonhookServer(tmp_path, "jobs", is_prepared=False)
    with closing(sqlite3.connect(tmp_path / "moonhook.sqlite3")) as database:
        database.execute(
            "CREATE TABLE django_migrations"
            " (id INTEGER PRIMARY KEY, app TEXT, name TEXT, applied TEXT)"
        )
        database.execute(
            "INSERT INTO django_migrations VALUES (1, 'accounts', '0001_initial', '2026-11-01')"
        )
        database.commit()
        before = [*database.iterdump()]
        server.start()
        status = server.process.wait(timeout=60)
        eventually(lambda: "This database was made before the first release" in server.output)

        assert status == 1
        assert "Traceback" not in server.output
        assert [*database.iterdump()] == before


def test_a_service_that_is_not_there_is_a_failed_start(tmp_path: Path) -> None:
    server = MoonhookServer(tmp_path, "wbe")
    server.start()

    assert server.process.wait(timeout=60) == 1
    eventually(lambda: "Unknown service: wbe. Services: web, jobs." in server.output)


def test_static_files_that_were_not_collected_are_a_failed_start(tmp_path: Path) -> None:
    server = MoonhookServer(tmp_path, "web", STATIC_ROOT=str(tmp_path / "nothing"))
    server.start()

    assert server.process.wait(timeout=60) == 1
    eventually(lambda: "holds no collected files" in server.output)


def test_a_copy_that_is_not_written_to_serves_as_an_image_does(tmp_path: Path) -> None:
    code, data = tmp_path / "app", tmp_path / "data"
    copy_as_the_image_does(code)
    build = {"MOONHOOK_DATA_DIR": str(tmp_path / "build"), "STATIC_ROOT": str(code / "static")}
    collect = [sys.executable, "manage.py", "collectstatic", "--noinput", "-v0"]
    subprocess.run(collect, cwd=code, env=build | NO_BYTECODE, check=True)
    compile_all = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode=unchecked-hash"]
    subprocess.run([*compile_all, "."], cwd=code, check=True)
    before = files_of(code)
    server = MoonhookServer(
        data,
        "web",
        directory=code,
        is_prepared=False,
        STATIC_ROOT=str(code / "static"),
        **NO_BYTECODE,
    )
    with server.running():
        page = call("GET", f"{server.url}/admin/login/")[1].decode()
        style = re.search(r'href="(/static/[^"]+\.css)"', page)
        assert style is not None
        status = call("GET", server.url + style[1])[0]
        made = {path.name for path in data.iterdir()}

    assert status == 200
    assert "static" not in made
    assert files_of(code) == before


def copy_as_the_image_does(target: Path) -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    names = [each.removeprefix("**/") for each in ignored]
    shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(*names))


def files_of(directory: Path) -> set[tuple[str, int]]:
    """Every file, and when it was changed."""
    return {(str(path), path.stat().st_mtime_ns) for path in directory.rglob("*")}

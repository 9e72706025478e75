"""docs/operate.md, "Backup and restore", step by step: what was there is there again."""

import json
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.eventually import eventually
from tests.moonhook_server import MoonhookServer
from tests.postgresql import empty_database, execute, needs_postgresql, url_of
from tests.sessions import call, graphql, machine_token

pytestmark = pytest.mark.slow

SECRETS = {"SECRET_KEY": "k" * 60, "MOONHOOK_PEPPERS": "1:" + "ab" * 32}
SOURCE = 'return { secrets.get("SHOP_KEY") }'
CREATE = 'mutation($s: String!) { createScript(name: "Order", source: $s) { id } }'
ISSUE = "mutation($id: ID!) { createHook(script: $id) { hook { url } } }"
SET = 'mutation { setSecret(name: "SHOP_KEY", value: "hush") { name } }'
RUNS = "{ runs { totalCount nodes { id } } }"


@dataclass
class Traces:
    """What somebody holds who used the platform before the disaster."""

    token: str
    hook_path: str
    run_id: str


def use(server: MoonhookServer) -> Traces:
    """An organisation with a session, a secret, a script, a hook and a run."""
    admin, token = f"{server.url}/admin/graphql", machine_token(server)
    graphql(admin, SET, token)
    script = graphql(admin, CREATE, token, s=SOURCE)["createScript"]["id"]
    url = graphql(admin, ISSUE, token, id=script)["createHook"]["hook"]["url"]
    status, body, headers = call("POST", url)
    assert (status, json.loads(body)) == (200, ["hush"])
    return Traces(token, urlsplit(url).path, headers["Moonhook-Run-Id"])


def assert_all_is_there(server: MoonhookServer, traces: Traces) -> None:
    bearer = {"Authorization": f"Bearer {traces.token}"}
    session = call("GET", f"{server.url}/session", None, bearer)
    hook_call = call("POST", f"{server.url}{traces.hook_path}")
    runs = graphql(f"{server.url}/admin/graphql", RUNS, traces.token)["runs"]

    assert session[0] == 200
    assert json.loads(session[1])["organisation"]["name"].startswith("Acme ")
    assert (hook_call[0], json.loads(hook_call[1])) == (200, ["hush"])
    assert runs["totalCount"] == 2
    assert {run["id"] for run in runs["nodes"]} == {
        traces.run_id,
        hook_call[2]["Moonhook-Run-Id"],
    }


@needs_postgresql
@pytest.mark.skipif(shutil.which("pg_dump") is None, reason="pg_dump is not installed")
def test_a_postgresql_database_is_dumped_and_restored(tmp_path: Path) -> None:
    dump = tmp_path / "moonhook.dump"
    with empty_database() as name:
        environment = SECRETS | {"DATABASE_URL": url_of(name)}
        first = MoonhookServer(tmp_path / "first", "web", **environment)
        with first.running():
            traces = use(first)
            dump_command = ["pg_dump", "--format=custom", f"--file={dump}", url_of(name)]
            subprocess.run(dump_command, check=True)
        execute(f'DROP DATABASE "{name}"')
        execute(f'CREATE DATABASE "{name}"')
        restore = ["pg_restore", "--exit-on-error", f"--dbname={url_of(name)}", str(dump)]
        subprocess.run(restore, check=True)
        second = MoonhookServer(tmp_path / "second", "web", "--no-migrate", **environment)
        with second.running():
            assert_all_is_there(second, traces)


def test_a_sqlite_database_is_copied_and_put_back(tmp_path: Path) -> None:
    backup = tmp_path / "backup.sqlite3"
    first = MoonhookServer(tmp_path / "first", "web", **SECRETS)
    with first.running():
        traces = use(first)
        with closing(sqlite3.connect(tmp_path / "first" / "moonhook.sqlite3")) as connection:
            connection.execute("VACUUM INTO ?", [str(backup)])
    (tmp_path / "second").mkdir()
    shutil.copy(backup, tmp_path / "second" / "moonhook.sqlite3")
    second = MoonhookServer(tmp_path / "second", "web", "--no-migrate", **SECRETS)
    with second.running():
        assert_all_is_there(second, traces)


@contextmanager
def hooks_called(server: MoonhookServer, traces: Traces) -> Iterator[list[str]]:
    """Meanwhile the hook is called from several threads; the ids of the runs that were answered."""
    answered: list[str] = []
    is_over = threading.Event()

    def keep_calling() -> None:
        while not is_over.is_set():
            status, _, headers = call("POST", f"{server.url}{traces.hook_path}", b"x" * 2000)
            assert status == 200
            answered.append(headers["Moonhook-Run-Id"])

    with ThreadPoolExecutor(3) as executor:
        callers = [executor.submit(keep_calling) for _ in range(3)]
        try:
            eventually(lambda: len(answered) > 50)
            yield answered
            reached = len(answered)
            eventually(lambda: len(answered) > reached + 20)
        finally:
            is_over.set()
    assert [caller.exception() for caller in callers] == [None] * 3


def assert_runs_are_there(server: MoonhookServer, traces: Traces, run_ids: list[str]) -> None:
    query = "query($id: ID!) { run(id: $id) { status } }"
    admin = f"{server.url}/admin/graphql"
    statuses = {
        graphql(admin, query, traces.token, id=run_id)["run"]["status"] for run_id in run_ids
    }
    hook_call = call("POST", f"{server.url}{traces.hook_path}")

    assert statuses == {"Succeeded"}
    assert (hook_call[0], json.loads(hook_call[1])) == (200, ["hush"])


@needs_postgresql
@pytest.mark.skipif(shutil.which("pg_dump") is None, reason="pg_dump is not installed")
def test_a_dump_under_load_has_every_run_that_was_answered_before_it(tmp_path: Path) -> None:
    dump = tmp_path / "moonhook.dump"
    with empty_database() as name:
        server = MoonhookServer(tmp_path, "web", **SECRETS, DATABASE_URL=url_of(name))
        with server.running():
            traces = use(server)
            with hooks_called(server, traces) as answered:
                before = list(answered)
                dump_command = ["pg_dump", "--format=custom", f"--file={dump}", url_of(name)]
                subprocess.run(dump_command, check=True)
        execute(f'DROP DATABASE "{name}"')
        execute(f'CREATE DATABASE "{name}"')
        restore = ["pg_restore", "--exit-on-error", "--no-owner", f"--dbname={url_of(name)}"]
        subprocess.run([*restore, str(dump)], check=True)
        with server.running():
            assert_runs_are_there(server, traces, before)


def test_a_copy_of_sqlite_under_load_has_every_run_that_was_answered_before_it(
    tmp_path: Path,
) -> None:
    database, backup = tmp_path / "moonhook.sqlite3", tmp_path / "backup.sqlite3"
    server = MoonhookServer(tmp_path, "web", **SECRETS)
    with server.running():
        traces = use(server)
        with hooks_called(server, traces) as answered:
            before = list(answered)
            with closing(sqlite3.connect(database)) as connection:
                connection.execute("VACUUM INTO ?", [str(backup)])
    backup.replace(database)
    for log in ("moonhook.sqlite3-wal", "moonhook.sqlite3-shm"):
        (tmp_path / log).unlink(missing_ok=True)
    with server.running():
        assert_runs_are_there(server, traces, before)
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_backup_without_its_peppers_accepts_no_credential(tmp_path: Path) -> None:
    first = MoonhookServer(tmp_path, "web", **SECRETS)
    with first.running():
        traces = use(first)
    second = MoonhookServer(tmp_path, "web", **SECRETS | {"MOONHOOK_PEPPERS": "1:" + "cd" * 32})
    with second.running():
        bearer = {"Authorization": f"Bearer {traces.token}"}
        session = call("GET", f"{second.url}/session", None, bearer)[0]
        hook_call = call("POST", f"{second.url}{traces.hook_path}")[0]

    assert session == 401
    assert hook_call in {401, 404}


@pytest.mark.parametrize(
    "kind",
    [
        "sqlite",
        pytest.param(
            "postgresql",
            marks=[
                needs_postgresql,
                pytest.mark.skipif(shutil.which("pg_dump") is None, reason="pg_dump is missing"),
            ],
        ),
    ],
)
def test_the_commands_keep_every_run_that_was_answered_before_a_backup_under_load(
    kind: str, tmp_path: Path
) -> None:
    backup = tmp_path / "moonhook.backup"
    with ExitStack() as stack:
        url = url_of(stack.enter_context(empty_database())) if kind == "postgresql" else None
        environment = SECRETS | ({"DATABASE_URL": url} if url else {})
        server = MoonhookServer(tmp_path / "data", "web", **environment)
        with server.running():
            traces = use(server)
            with hooks_called(server, traces) as answered:
                before = list(answered)
                server.manage("backup", str(backup))
            with pytest.raises(AssertionError, match=r"in use.*Nothing was changed"):
                server.manage("restore", str(backup), "--yes")
        server.manage("restore", str(backup), "--yes")
        with server.running():
            assert_runs_are_there(server, traces, before)

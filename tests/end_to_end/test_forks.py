"""What services inherit from their parent: one thread, and no connection of anybody."""

import json
import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.eventually import eventually
from tests.life_cycle.processes import services_of, wait_for_replacement, web_workers
from tests.moonhook_server import MoonhookServer
from tests.postgresql import empty_database, needs_postgresql, url_of

pytestmark = pytest.mark.slow

# Notes before each fork what the process that forks has.
NOTING = """
import json, os, runpy, socket, sys

def name_of(descriptor):
    target = os.readlink(f"/proc/self/fd/{descriptor}")
    if not target.startswith("socket:"):
        return target
    with socket.socket(fileno=os.dup(int(descriptor))) as inherited:
        return f"socket of {inherited.getsockname()}"

def note():
    from django.db import connections
    opened = [each for each in os.listdir("/proc/self/fd") if int(each) > 2]
    # The directory that was listed is closed by now.
    opened = [each for each in opened if os.path.lexists(f"/proc/self/fd/{each}")]
    line = {
        "pid": os.getpid(),
        "threads": len(os.listdir("/proc/self/task")),
        "connections": [each.alias for each in connections.all() if each.connection],
        "files": [name_of(each) for each in opened],
        "has_apprise": "apprise" in sys.modules,
    }
    with open(os.environ["FORKS"], "a") as notes:
        notes.write(json.dumps(line) + "\\n")

os.register_at_fork(before=note)
runpy.run_path("manage.py", run_name="__main__")
"""
HEARTBEATS = "/dev/shm/wgunicorn-"


class NotingServer(MoonhookServer):
    command = ("-c", NOTING, "serve")


def notes_in(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("kind", ["SQLite", pytest.param("PostgreSQL", marks=needs_postgresql)])
def test_a_process_that_forks_has_one_thread_and_only_listeners(kind: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        environment = {"FORKS": str(tmp_path / "forks"), "WEB_CONCURRENCY": "2"}
        if kind == "PostgreSQL":
            environment["DATABASE_URL"] = url_of(stack.enter_context(empty_database()))
        server = NotingServer(tmp_path, **environment)
        stack.enter_context(server.running())
        parent, workers = server.process.pid, web_workers(server)
        os.kill(min(workers), signal.SIGKILL)
        wait_for_replacement(server, {min(workers)}, count=2)
        [web] = services_of(server, "web server")
        os.kill(web, signal.SIGKILL)
        eventually(lambda: set(services_of(server, "web server")) - {web})
        server.wait_until_ready()
        notes = notes_in(tmp_path / "forks")

    listener = f"socket of ('127.0.0.1', {server.port})"
    of_parent = [each for each in notes if each["pid"] == parent]
    of_web_servers = [each for each in notes if each["pid"] != parent]
    assert {each["threads"] for each in notes} == {1}
    assert [each["connections"] for each in notes if each["connections"]] == []
    # It is large, and few processes send an SMS.
    assert [each for each in notes if each["has_apprise"]] == []
    # What is prepared, two services, and a web server once more.
    assert [each["files"] for each in of_parent] == [[listener] * 2] * 4
    assert len(of_web_servers) >= 5
    files = [name for each in of_web_servers for name in each["files"]]
    assert {name for name in files if not name.startswith(HEARTBEATS)} == {listener}

"""kill -9 of every process of a node but the first, one after the other, under load.

What was answered has been done, the service is back (within five seconds, which is judged at full
size), and nothing is left.
"""

import http.client
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.eventually import eventually
from tests.life_cycle.hooks import hook_of, run_ids
from tests.life_cycle.load import Load, Refused, Repeated
from tests.life_cycle.processes import (
    fork_servers,
    sandbox_children,
    services_of,
    web_servers,
    web_workers,
)
from tests.moonhook_server import MoonhookServer
from tests.postgresql import empty_database, needs_postgresql, url_of
from tests.process_tree import children_of, family_of, is_alive
from tests.servers import MailServer
from tests.sessions import call, graphql, machine_token
from tests.size import sized

pytestmark = pytest.mark.slow

# The promise, and what only a broken node would take on the busiest machine.
BACK_WITHIN_SECONDS = sized(small=60, full=5)
ROUNDS = sized(small=1, full=5)
# Until all is as it was: every worker new, every lost task done again.
PATIENCE_SECONDS = 120
COUNTING = 'return tostring(store.increment("calls"))'
TASKS = (
    "import json; from jobs.models import Message; "
    "print(json.dumps(list(Message.objects.values_list('status', flat=True))))"
)
SEND = b'{"query": "mutation { sendPinCode(email: \\"alice@example.com\\", sendVia: Email) }"}'
CREATE_USER = 'mutation { createUser(email: "alice@example.com") { id } }'
JSON = {"Content-Type": "application/json"}

Find = Callable[[MoonhookServer], list[int]]
VICTIMS: dict[str, Find] = {
    "web worker": lambda server: sorted(web_workers(server)),
    "fork server": fork_servers,
    "sandbox": sandbox_children,
    "web server": web_servers,
    "jobs runner": lambda server: services_of(server, "jobs runner"),
}


class Recovery(NamedTuple):
    victim: str
    seconds: float


@pytest.fixture
def mail_server() -> Iterator[MailServer]:
    with MailServer().running() as server:
        yield server


@contextmanager
def database(kind: str, directory: Path) -> Iterator[str]:
    if kind == "SQLite":
        yield f"sqlite:///{directory}/moonhook.sqlite3"
    else:
        with empty_database() as name:
            yield url_of(name)


def has_succeeded(method: str, url: str, body: bytes, headers: dict[str, str]) -> bool:
    try:
        return call(method, url, body, headers)[0] in {200, 201}
    except (OSError, http.client.HTTPException):
        return False


class Client:
    """What it asks of the server besides calling hooks."""

    def __init__(self, server: MoonhookServer) -> None:
        self._server = server
        made = json.loads(server.manage("create_organisation", "Globex", "--json"))
        arguments = ("--organisation", made["id"], "--name", "k", "--json")
        key = json.loads(server.manage("create_api_key", *arguments))
        login = {"credential": "ApiKey", "uid": key["key"], "password": key["secret"], "email": ""}
        self.login = json.dumps(login).encode()

    def open_session(self) -> str:
        """Its token."""
        return str(self._post("/session", self.login)["token"])

    def ask_for_a_code(self) -> bool:
        return bool(self._post("/user/graphql", SEND)["data"]["sendPinCode"])

    def is_logged_in(self, token: str) -> bool:
        bearer = {"Authorization": f"Bearer {token}"}
        return call("GET", f"{self._server.url}/session", None, bearer)[0] == 200

    def _post(self, path: str, body: bytes) -> Any:
        status, content, _ = call("POST", self._server.url + path, body, JSON)
        if status not in {200, 201}:
            raise Refused
        return json.loads(content)


def kill_one_after_the_other(
    server: MoonhookServer, load: Load, client: Client, hook: str
) -> list[Recovery]:
    return [
        Recovery(victim, seconds_without(server, find, load, client, hook))
        for _ in range(ROUNDS)
        for victim, find in VICTIMS.items()
    ]


def seconds_without(
    server: MoonhookServer, find: Find, load: Load, client: Client, hook: str
) -> float:
    """Kills one when all is well; how long it takes until it is so again."""
    eventually(lambda: is_well(server), seconds=PATIENCE_SECONDS)
    before = len(load.runs)
    eventually(lambda: len(load.runs) > before + 20, seconds=PATIENCE_SECONDS)
    victim = find(server)[0]
    os.kill(victim, signal.SIGKILL)
    killed_at = time.monotonic()
    eventually(
        lambda: (
            not is_alive(victim)
            and find(server)
            and has_succeeded("POST", hook, b"", {})
            and has_succeeded("POST", f"{server.url}/session", client.login, JSON)
        ),
        seconds=PATIENCE_SECONDS,
    )
    return time.monotonic() - killed_at


def is_well(server: MoonhookServer) -> bool:
    """Ready, with all services running, and with nobody left whom a dead one had started."""
    try:
        status, content, _ = call("GET", f"{server.url}/readyz")
    except (OSError, http.client.HTTPException):
        return False
    is_ok = (status, json.loads(content)["status"]) == (200, "ok")
    return is_ok and len(children_of(server.process.pid)) == 2


def states_of_tasks(server: MoonhookServer) -> list[str]:
    states: list[str] = json.loads(server.manage("shell", "--no-imports", "-c", TASKS))
    return states


@pytest.mark.parametrize("kind", ["SQLite", pytest.param("PostgreSQL", marks=needs_postgresql)])
def test_a_node_survives_the_death_of_each_of_its_processes(
    kind: str, tmp_path: Path, mail_server: MailServer
) -> None:
    with ExitStack() as stack:
        server = MoonhookServer(
            tmp_path,
            DATABASE_URL=stack.enter_context(database(kind, tmp_path)),
            EMAIL_URL=mail_server.url,
            RATE_LIMITS="off",
            WEB_CONCURRENCY="2",
            TASK_TIMEOUT="5",
            TASK_LEASE="10",
        )
        stack.enter_context(server.running())
        hook = hook_of(server, COUNTING)
        graphql(f"{server.url}/admin/graphql", CREATE_USER, machine_token(server, "Initech"))
        client = Client(server)
        sessions, codes = Repeated(client.open_session), Repeated(client.ask_for_a_code)
        with (
            Load(hook).running() as load,
            sessions.running(pause_seconds=0.1),
            codes.running(pause_seconds=0.3),
        ):
            recoveries = kill_one_after_the_other(server, load, client, hook)
            eventually(lambda: is_well(server), seconds=PATIENCE_SECONDS)
            eventually(lambda: len(sessions.results) > 20, seconds=PATIENCE_SECONDS)
            eventually(lambda: len(codes.results) > 6, seconds=PATIENCE_SECONDS)
        counted = int(call("POST", hook)[1])
        logged_in = [client.is_logged_in(token) for token in sessions.results]
        eventually(lambda: set(states_of_tasks(server)) == {"SUCCESSFUL"}, seconds=PATIENCE_SECONDS)
        family = family_of(server.process.pid)
        status = server.stop()
        recorded, tasks = run_ids(server), states_of_tasks(server)

    assert [each.victim for each in recoveries if each.seconds > BACK_WITHIN_SECONDS] == []
    assert len(recoveries) == ROUNDS * len(VICTIMS)
    # Every answer names a run, which is in the database; nothing was refused but for a reason.
    assert set(load.without_run) <= {503}
    assert load.statuses <= {200, 500, 503}
    assert set(load.runs) <= set(recorded)
    assert len(load.runs) == len(set(load.runs))
    assert counted <= len(recorded) + len(load.failures) + len(recoveries)
    assert set(logged_in) == {True}
    assert len(tasks) >= len(codes.results)
    assert status == 0
    assert len(family) > 6
    assert [pid for pid in family if is_alive(pid)] == []

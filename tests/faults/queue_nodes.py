"""Nodes that work a queue, what they are asked to do, and what came of it."""

import contextlib
import os
import signal
import sqlite3
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psycopg

from tests.eventually import eventually
from tests.life_cycle.load import Load
from tests.life_cycle.processes import (
    fork_servers,
    sandbox_children,
    services_of,
    web_servers,
    web_workers,
)
from tests.moonhook_server import MoonhookServer
from tests.node import SHARED_SECRETS
from tests.process_tree import send
from tests.sessions import graphql, machine_token

CREATE = "mutation($n: String!, $s: String!) { createScript(name: $n, source: $s) { id } }"
LIMIT = "mutation($id: ID!, $t: Float!) { updateScript(id: $id, timeoutSeconds: $t) { id } }"
ISSUE = "mutation($id: ID!) { createHook(script: $id) { hook { id url } } }"
ACCEPT = """mutation($id: ID!, $n: Int!) {
    updateHook(id: $id, replyMode: Accepted, maxAttempts: $n) { id } }"""

# Writes the attempt's number three times into the value of its call, and takes 0.1 s.
MARKS = """
local call = params.get("first_run_id")
for step = 1, 3 do
    store.set(call, (store.get(call) or "") .. params.get("attempt"))
    local ends = os.clock() + 0.033
    while os.clock() < ends do end
end
return "done"
"""


class QueuedRun(NamedTuple):
    run_id: str
    first_id: str
    attempt: int | None
    status: str
    is_dead_letter: bool


class Database:
    """What is in it, whichever it is."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        if self.url.startswith("sqlite"):
            with contextlib.closing(sqlite3.connect(urlsplit(self.url).path, timeout=20)) as file:
                return file.execute(query).fetchall()
        with psycopg.connect(self.url) as connection:
            return connection.execute(query.encode()).fetchall()

    def is_queue_empty(self) -> bool:
        try:
            return self.ask("SELECT count(*) FROM jobs_queueentry") == [(0,)]
        except psycopg.OperationalError:
            return False

    def is_running_something(self) -> bool:
        return self.ask("SELECT count(*) FROM scripts_engine_run WHERE status = 'running'") != [
            (0,)
        ]

    def runs(self) -> list[QueuedRun]:
        columns = "id, first_run_id, attempt, status, is_dead_letter"
        rows = self.ask(f"SELECT {columns} FROM scripts_engine_run")
        return [
            QueuedRun(_plain(run_id), _plain(first_id or run_id), attempt, status, bool(dead))
            for run_id, first_id, attempt, status, dead in rows
        ]

    def marks(self) -> dict[str, str]:
        """What attempts have written, by call."""
        rows = self.ask("SELECT key, value FROM scripts_engine_storedvalue")
        return {_plain(bytes(key).decode()): str(value).strip('"') for key, value in rows}


def _plain(run_id: object) -> str:
    """SQLite stores ids without hyphens."""
    return str(run_id).replace("-", "")


@contextmanager
def queue_nodes(
    directory: Path, number: int, url: str, **environment: str
) -> Iterator[list[MoonhookServer]]:
    """Web servers with runners, on one database."""
    given = SHARED_SECRETS | {"DATABASE_URL": url, "RATE_LIMITS": "off", "WEB_CONCURRENCY": "1"}
    nodes = [
        MoonhookServer(directory / str(each), "web", "jobs", "--no-demo", **given, **environment)
        for each in range(number)
    ]
    with ExitStack() as running:
        for node in nodes:
            running.enter_context(node.running())
        yield nodes


def accepting_hook(
    server: MoonhookServer, source: str = MARKS, *, timeout_seconds: float = 2, attempts: int = 10
) -> str:
    """The path of a hook of a new organisation whose calls are queued."""
    admin, token = f"{server.url}/admin/graphql", machine_token(server)
    script = graphql(admin, CREATE, token, n=uuid.uuid4().hex, s=source)["createScript"]
    graphql(admin, LIMIT, token, id=script["id"], t=timeout_seconds)
    hook = graphql(admin, ISSUE, token, id=script["id"])["createHook"]["hook"]
    graphql(admin, ACCEPT, token, id=hook["id"], n=attempts)
    return "/hook/" + str(hook["url"]).partition("/hook/")[2]


def runners(server: MoonhookServer) -> list[int]:
    return services_of(server, "jobs runner")


def runner_of(server: MoonhookServer) -> int:
    """The runner's process, once there is one."""
    eventually(lambda: runners(server))
    return runners(server)[0]


VICTIMS: list[Callable[[MoonhookServer], list[int]]] = [
    runners,
    sandbox_children,
    lambda server: [pid for web in web_servers(server) for pid in web_workers(server) if web],
    fork_servers,
]


def kill_one(server: MoonhookServer, find: Callable[[MoonhookServer], list[int]]) -> None:
    """One of what is found, if there is any at the moment."""
    with contextlib.suppress(ProcessLookupError, FileNotFoundError, ValueError):
        for pid in find(server)[-1:]:
            os.kill(pid, signal.SIGKILL)


def kill_at_work(servers: list[MoonhookServer], database: Database) -> None:
    """Kills the runners of all servers while one of them runs something."""
    found = [runner_of(server) for server in servers]

    def have_stopped_at_work() -> bool:
        """Stopped first, so that no run ends before the kill."""
        eventually(database.is_running_something)
        send(signal.SIGSTOP, found)
        if database.is_running_something():
            return True
        send(signal.SIGCONT, found)
        return False

    eventually(have_stopped_at_work)
    send(signal.SIGKILL, found)


def attempts_by_call(runs: list[QueuedRun]) -> dict[str, list[QueuedRun]]:
    calls = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.attempt or 0):
        calls[run.first_id].append(run)
    return calls


def check_runs(loads: list[Load], database: Database) -> Counter[str]:
    """What was accepted is there and has run to its end, one attempt after the other.

    Returns the number of runs of each status.
    """
    # Runs of calls that were not queued are not attempts.
    runs = [run for run in database.runs() if run.attempt is not None]
    marks = database.marks()
    calls = attempts_by_call(runs)
    accepted = {run.replace("-", "") for load in loads for run in load.runs}

    assert {status for load in loads for status in load.statuses} <= {202, 503}
    assert {status for load in loads for status in load.without_run} <= {503}
    assert accepted <= calls.keys()
    for *earlier, last in calls.values():
        assert [run.attempt for run in (*earlier, last)] == list(range(1, len(earlier) + 2))
        assert {run.status for run in earlier} <= {"lost", "failed", "timed-out"}
        assert last.status == "succeeded"
        # Each attempt starts after the end of the one before, and the last one ran to its end.
        written = marks[last.first_id]
        assert list(map(int, written)) == sorted(map(int, written))
        assert written.endswith(3 * str(last.attempt))
    return Counter(run.status for run in runs)

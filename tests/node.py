"""Web nodes and workers as separate processes, and what is called on them."""

import http.client
import signal
import uuid
from pathlib import Path
from typing import NamedTuple

from tests.moonhook_server import MoonhookServer, WebServer
from tests.process_tree import family_of, send
from tests.sessions import call, graphql

LONGEST_RUN_SECONDS = 25
SHARED_SECRETS = {"SECRET_KEY": "n" * 60, "MOONHOOK_PEPPERS": "1:" + "ab" * 32}


class Node(WebServer):
    """A web server with a data directory of its own, and secrets that all nodes share."""

    def __init__(self, data_dir: Path, **environment: str) -> None:
        data_dir.mkdir(parents=True, exist_ok=True)
        sizes = {"WEB_CONCURRENCY": "1", "SANDBOX_SLOTS": "4", "WEB_THREADS": "12"}
        super().__init__(data_dir, **(SHARED_SECRETS | sizes | environment))

    def kill(self) -> None:
        """Everything of it at once, as when a machine loses its power."""
        send(signal.SIGKILL, family_of(self.process.pid))
        self.process.wait(timeout=30)


class Worker(Node):
    """The jobs runner of a node."""

    command = ("manage.py", "run_jobs")


class Answer(NamedTuple):
    status: int
    body: bytes
    run_id: str | None


def call_hook(node: MoonhookServer, path: str, body: bytes = b"") -> Answer | None:
    """``None`` where no whole answer came."""
    try:
        status, content, headers = call("POST", f"{node.url}{path}", body)
    except (OSError, http.client.HTTPException):
        return None
    return Answer(status, content, headers["Moonhook-Run-Id"])


def new_hook(node: MoonhookServer, token: str, source: str) -> tuple[str, str]:
    """The id of a new script, and the path of a new hook of it, which is the same on all nodes.

    The script may run as long as any may: a busy machine must not end it.
    """
    admin = f"{node.url}/admin/graphql"
    create = (
        "mutation($n: String!, $s: String!, $t: Float!) "
        "{ createScript(name: $n, source: $s, timeoutSeconds: $t) { id } }"
    )
    given = {"n": uuid.uuid4().hex, "s": source, "t": LONGEST_RUN_SECONDS}
    script: str = graphql(admin, create, token, **given)["createScript"]["id"]
    issue = "mutation($id: ID!) { createHook(script: $id) { hook { url } } }"
    url: str = graphql(admin, issue, token, id=script)["createHook"]["hook"]["url"]
    return script, "/hook/" + url.partition("/hook/")[2]

"""Measures the stages of a webhook call: `python benchmarks/hook_anatomy.py [CALLS]`.

Calls the application in this process, without a web server, on SQLite; then each stage alone
("running and recording" consists of two of them). Prints this process's CPU time in µs, the minimum
over several rounds; the sandbox process is not included. A stage alone runs with warm caches, so
the sum is less than the whole.
"""

import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
DIRECTORY = tempfile.TemporaryDirectory(prefix="moonhook-bench-")
os.environ |= {
    "DJANGO_SETTINGS_MODULE": "config.settings",
    "DATABASE_URL": f"sqlite:///{DIRECTORY.name}/moonhook.sqlite3",
    "MOONHOOK_DATA_DIR": DIRECTORY.name,
    "LOG_LEVEL": "ERROR",
    "ALLOWED_HOSTS": "127.0.0.1",
}
django.setup()

from django.core.management import call_command  # noqa: E402
from uuid_utils.compat import uuid7  # noqa: E402

from benchmarks.comparison.order import ORDER, SOURCE  # noqa: E402
from config.wsgi import application  # noqa: E402
from hooks.acceptance import Admitted, admit  # noqa: E402
from hooks.edge.http import CallRequest, reply_of  # noqa: E402
from hooks.edge.wsgi import hook_of_url, resolve  # noqa: E402
from scripts_engine.models import Run  # noqa: E402
from scripts_engine.runs.execution import run_script  # noqa: E402
from scripts_engine.runs.recording import record_run  # noqa: E402
from scripts_engine.runs.spec import Event  # noqa: E402
from scripts_engine.sandbox import Job  # noqa: E402
from scripts_engine.sandbox_pool import sandbox_pool  # noqa: E402
from tests import factories  # noqa: E402

CALLS = 2_000
ROUNDS = 5
BODY = json.dumps(ORDER).encode()


def microseconds(action: Callable[[], object], calls: int) -> float:
    for _ in range(calls // 10):
        action()
    rounds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(calls // ROUNDS):
            action()
        rounds.append((time.process_time() - began) / (calls // ROUNDS) * 1e6)
    return min(rounds)


def environ(path: str) -> dict[str, Any]:
    return {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": path,
        "RAW_URI": path,
        "QUERY_STRING": "",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8000",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "127.0.0.1:8000",
        "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(BODY)),
        "wsgi.input": io.BytesIO(BODY),
        "wsgi.errors": sys.stderr,
        "wsgi.url_scheme": "http",
    }


def read_event(request: CallRequest) -> Event:
    admitted = admit(request, None)
    assert isinstance(admitted, Admitted)
    return admitted.event


def stages() -> dict[str, Callable[[], object]]:
    acme = factories.make_organisation("Acme")
    issued = factories.make_hook(factories.make_script(acme, SOURCE))
    address = (str(acme.pk), str(issued.hook.script_id), issued.call_token)
    path = "/hook/" + "/".join(address)
    request = CallRequest.of(environ(path))
    event = read_event(request)
    spec = factories.spec_of(issued.hook)
    finished = run_script(spec, event)
    job = Job(source=SOURCE.encode(), chunk_name="order", params={"body": BODY})
    row = Run.objects.filter(pk=finished.run_id).values().get()

    def whole() -> None:
        statuses: list[str] = []
        reply: Any = application(environ(path), lambda status, headers: statuses.append(status))
        b"".join(reply)
        reply.close()
        assert statuses == ["200 OK"]

    return {
        "the whole call": whole,
        "finding the view": lambda: resolve(path),
        "request to event": lambda: read_event(CallRequest.of(environ(path))),
        "authenticating: the SELECT": lambda: hook_of_url(*address),
        "the sandbox, this side": lambda: sandbox_pool().run(str(acme.pk), job),
        "the run's INSERT, committed": lambda: record_run({**row, "id": uuid7()}),
        "running and recording": lambda: run_script(spec, event),
        "outcome to reply": lambda: reply_of(request, finished),
    }


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else CALLS
    with DIRECTORY:
        call_command("migrate", verbosity=0)
        for name, action in stages().items():
            sys.stdout.write(f"{microseconds(action, calls):6.0f}  {name}\n")
            sys.stdout.flush()
        sandbox_pool().close()


if __name__ == "__main__":
    main()

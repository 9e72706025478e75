"""The limit of open files, in a process of its own."""

import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.moonhook_server import ROOT, MoonhookServer, prepare_database
from tests.sessions import call

LIMIT = """
import json, resource, sys
soft, hard, *given = json.loads(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
"""
ALLOW = """
from core.server.open_files import allow_open_files
allow_open_files(*given)
print(json.dumps(resource.getrlimit(resource.RLIMIT_NOFILE)))
"""
SET_UP = """
import django
django.setup()
from django.conf import settings
"""
FIT = """
from scripts_engine.sandbox_pool import pool_size
from scripts_engine.sandbox_pool import fit_to_open_files
connections = fit_to_open_files(connections=500)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
print(json.dumps([pool_size().processes, connections, soft, hard]))
"""
READYZ = """
import os
from django.test import Client
readyz = lambda: Client().get("/readyz", headers={"host": "127.0.0.1"})
replies = [readyz()]
opened = []
try:
    while True:
        opened.append(os.open("/", os.O_RDONLY))
except OSError:
    pass
replies.append(readyz())
for each in opened:
    os.close(each)
replies.append(readyz())
print(json.dumps([[reply.status_code, reply.json()] for reply in replies]))
"""
OUTAGE_WITH_FEW = """
import os
from config.operations.readiness import Readiness
from core.database.readiness import NotReady
from core.server.open_files import are_few_files_left
opened = []
while not are_few_files_left():
    opened.append(os.open("/", os.O_RDONLY))
reasons = iter([None, "cannot-be-opened", "refused"])
def check():
    if reason := next(reasons):
        raise NotReady(reason)
readiness = Readiness({"database": check}, seconds=5)
print(json.dumps([readiness.reasons()["database"] for _ in range(3)]))
"""
SERVE_WITH_256 = """
import resource, runpy
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
runpy.run_path("manage.py", run_name="__main__")
"""
HOOKS = """
from tests.factories import make_hook, make_organisation, make_script
for number in range(150):
    organisation = make_organisation(f"Shop {number}")
    hook, call_token = make_hook(make_script(organisation, "return 1"))
    print(hook.url_with(call_token))
"""


def run_limited(script: str, *given: int, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", LIMIT + script, json.dumps(given)]
    kept = {"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "config.settings"}
    done = subprocess.run(
        command, cwd=ROOT, env=kept | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize(
    ("soft", "hard", "count", "expected"),
    [(200, 400, 300, 300), (200, 400, 500, 400), (200, 400, 100, 200)],
)
def test_the_soft_limit_is_raised_as_far_as_needed_and_allowed(
    soft: int, hard: int, count: int, expected: int
) -> None:
    assert json.loads(run_limited(ALLOW, soft, hard, count).stdout) == [expected, hard]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hard", "slots", "expected", "lines"),
    [
        (4096, 8, [256, 500, 1768, 4096], 0),
        (256, 8, [37, 72, 256, 256], 1),
        (256, 50, [50, 72, 256, 256], 1),
    ],
)
def test_sandboxes_and_connections_share_the_open_files_that_are_allowed(
    tmp_path: Path, hard: int, slots: int, expected: list[int], lines: int
) -> None:
    done = run_limited(
        SET_UP + FIT,
        200,
        hard,
        MOONHOOK_DATA_DIR=str(tmp_path),
        SANDBOX_SLOTS=str(slots),
        SANDBOX_PROCESSES="256",
    )

    assert json.loads(done.stdout) == expected
    told = f"Keeping at most {expected[0]} sandbox processes instead of 256"
    assert done.stderr.count(told) == lines


@pytest.mark.slow
def test_readyz_tells_that_no_files_are_left_and_does_not_fail(tmp_path: Path) -> None:
    prepare_database(tmp_path)
    done = run_limited(SET_UP + READYZ, 200, 200, MOONHOOK_DATA_DIR=str(tmp_path))
    before, without, after = json.loads(done.stdout)

    checks = {"database": "ok", "sandbox": "ok", "queue": "ok"}
    assert before == [200, {"status": "ok", "checks": checks}]
    reasons = {"open-files": "few-left"}
    assert without == [200, {"status": "degraded", "checks": checks, "reasons": reasons}]
    assert after == before


@pytest.mark.slow
def test_an_outage_that_is_not_for_lack_of_files_is_told_although_few_are_left(
    tmp_path: Path,
) -> None:
    done = run_limited(SET_UP + OUTAGE_WITH_FEW, 200, 200, MOONHOOK_DATA_DIR=str(tmp_path))

    assert json.loads(done.stdout) == [None, None, "refused"]


class ServerWith256Files(MoonhookServer):
    command = ("-c", SERVE_WITH_256, "serve")


@pytest.mark.slow
def test_150_organisations_are_served_with_256_open_files(tmp_path: Path) -> None:
    server = ServerWith256Files(tmp_path, WEB_CONCURRENCY="1", SANDBOX_PROCESSES="256")
    with server.running(), ExitStack() as idle:
        urls = server.manage("shell", "-v0", "-c", HOOKS).split()
        for _ in range(60):
            idle.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        with ThreadPoolExecutor(8) as executor:
            statuses = list(executor.map(lambda url: call("POST", url)[0], urls * 2))

    assert statuses == [200] * 300
    # The web server, and the queue's runner, which has no connections.
    assert server.output.count("Keeping at most 37 sandbox processes instead of 256") == 1
    assert server.output.count("Keeping at most 51 sandbox processes instead of 256") == 1

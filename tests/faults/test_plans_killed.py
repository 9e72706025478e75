"""kill -9 of a process that applies a plan: all of the plan is live afterwards, or nothing."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faults.conftest import PrivatePostgres
from tests.moonhook_server import ROOT, MoonhookServer
from tests.size import sized

pytestmark = pytest.mark.slow

ROUNDS = sized(small=10, full=100)
OBJECTS = 100


@pytest.fixture(params=["sqlite", "postgresql"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> MoonhookServer:
    """Its settings and its migrated database; it does not run."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/moonhook.sqlite3"
    else:
        postgres: PrivatePostgres = request.getfixturevalue("postgres")
        url = postgres.url
    server = MoonhookServer(tmp_path, DATABASE_URL=url)
    server.manage("migrate", "-v0")
    return server


@contextmanager
def applying(server: MoonhookServer) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A process that is about to apply a plan, with what is live before."""
    environment = server.environment | {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "tests.faults.plan_process"]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            state = json.loads(process.stdout.readline())
            assert process.stdout.readline() == "applying\n"
            yield process, state
        finally:
            process.kill()


def test_a_plan_is_applied_whole_or_not_at_all(server: MoonhookServer) -> None:
    with applying(server) as (process, _):
        began = time.monotonic()
        assert process.stdout is not None
        assert process.stdout.readline() == "applied\n"
        longest = time.monotonic() - began
        process.wait()
    states = []
    for _ in range(ROUNDS):
        with applying(server) as (process, state):
            states.append(state)
            time.sleep(random.uniform(0, longest))
            os.kill(process.pid, signal.SIGKILL)
    with applying(server) as (_, state):
        states.append(state)

    for state in states:
        [(edition, count)] = state["editions"].items()
        assert count == OBJECTS
        assert state["releases"] == int(edition)
        assert state["is_count_exact"]

"""The first requests of a fresh process come all at once, and are answered and counted alike."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.moonhook_server import ROOT

# A window of 30; the interpreter changes threads far more often than it does by itself.
_EIGHTY_AT_ONCE = """
import json, sys
import django
django.setup()
from core.errors import RateLimitedError
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from tests.concurrency import at_once

def outcome(_):
    try:
        hit([windows.LOGIN_FAILURES_OF_CLIENT], "first-requests", "x")
    except RateLimitedError:
        return "refused"
    except Exception as error:
        return repr(error)
    return "counted"

sys.setswitchinterval(1e-5)
print(json.dumps(at_once(80, outcome)))
"""

_MIGRATE = """
import django
django.setup()
from django.core.management import call_command

call_command("migrate", verbosity=0)
print("null")
"""


def in_a_fresh_process(program: str, **environment: str) -> Any:
    finished = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


@pytest.mark.slow
def test_the_first_requests_are_counted_however_many_come_at_once(tmp_path: Path) -> None:
    database = {"DATABASE_URL": f"sqlite:///{tmp_path / 'moonhook.sqlite3'}"}
    in_a_fresh_process(_MIGRATE, **database)
    outcomes = in_a_fresh_process(_EIGHTY_AT_ONCE, **database)

    assert sorted(outcomes) == ["counted"] * 30 + ["refused"] * 50

"""The first requests of a fresh process come all at once, and are answered and counted alike."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.moonhook_server import ROOT
from tests.private_servers import private_redis

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
def test_redis_counts_the_first_requests_however_many_come_at_once() -> None:
    with private_redis() as redis:
        outcomes = in_a_fresh_process(_EIGHTY_AT_ONCE, REDIS_URL=redis.url)

    assert sorted(outcomes) == ["counted"] * 30 + ["refused"] * 50

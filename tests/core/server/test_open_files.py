"""The limit of open files, in a process of its own."""

import json
import subprocess
import sys

import pytest

ALLOW = """
import json, resource, sys
from core.server.open_files import allow_open_files
soft, hard, count = json.loads(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
allow_open_files(count)
print(json.dumps(resource.getrlimit(resource.RLIMIT_NOFILE)))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "count", "expected"),
    [(200, 400, 300, 300), (200, 400, 500, 400), (200, 400, 100, 200)],
)
def test_the_soft_limit_is_raised_as_far_as_needed_and_allowed(
    soft: int, hard: int, count: int, expected: int
) -> None:
    command = [sys.executable, "-c", ALLOW, json.dumps([soft, hard, count])]
    done = subprocess.run(command, capture_output=True, check=True)

    assert json.loads(done.stdout) == [expected, hard]

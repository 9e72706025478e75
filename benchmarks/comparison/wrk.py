"""The load generator wrk."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks.comparison.targets import Target

SCRIPT = Path(__file__).with_name("wrk.lua")
RECORD_SEPARATOR = b"\x1e"
ANSWER_SECONDS = 10


class Sample(NamedTuple):
    """The figures of one run of wrk."""

    rps: float
    p50_ms: float
    p99_ms: float
    requests: int
    not_2xx: int
    socket_errors: int


def is_installed() -> bool:
    return shutil.which("wrk") is not None


def drive(target: Target, *, connections: int, seconds: float) -> Sample:
    """Runs clients that each wait for a response before they send the next request."""
    with tempfile.NamedTemporaryFile() as requests:
        for request in target.requests:
            requests.write(request.on_the_wire() + RECORD_SEPARATOR)
        requests.flush()
        command = ["wrk", "--threads=1", f"--connections={connections}", f"--duration={seconds}s"]
        finished = subprocess.run(
            [*command, f"--timeout={ANSWER_SECONDS}s", f"--script={SCRIPT}", target.server.url],
            env=os.environ | {"BENCH_REQUESTS": requests.name},
            capture_output=True,
            text=True,
            check=True,
        )
    return Sample(**json.loads(finished.stdout.splitlines()[-1]))

"""The load generator wrk."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.comparison.requests import Request
from benchmarks.comparison.targets import Target

SCRIPT = Path(__file__).with_name("wrk.lua")
RECORD_SEPARATOR = b"\x1e"
ANSWER_SECONDS = 10
CLIENTS_BESIDE = 2


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
    url = target.server.url
    with ExitStack() as running:
        if target.beside is not None:
            # Longer than needed, since it is stopped.
            running.enter_context(_wrk(url, [target.beside], CLIENTS_BESIDE, seconds + 60))
        wrk = running.enter_context(_wrk(url, target.requests, connections, seconds))
        output, _ = wrk.communicate()
    if wrk.returncode:
        raise subprocess.CalledProcessError(wrk.returncode, wrk.args)
    return Sample(**json.loads(output.splitlines()[-1]))


@contextmanager
def _wrk(
    url: str, requests: Sequence[Request], connections: int, seconds: float
) -> Iterator[subprocess.Popen[str]]:
    """Runs wrk, and stops it if it still runs at the end of the block."""
    with tempfile.NamedTemporaryFile() as file:
        for request in requests:
            file.write(request.on_the_wire() + RECORD_SEPARATOR)
        file.flush()
        command = ["wrk", "--threads=1", f"--connections={connections}", f"--duration={seconds}s"]
        with subprocess.Popen(
            [*command, f"--timeout={ANSWER_SECONDS}s", f"--script={SCRIPT}", url],
            env=os.environ | {"BENCH_REQUESTS": file.name},
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.terminate()

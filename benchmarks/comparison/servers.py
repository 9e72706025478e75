"""Starts and stops servers on loopback."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"
START_SECONDS = 120
STOP_SECONDS = 60


class DidNotStartError(Exception):
    """The server did not start; its log says why."""


@dataclass(frozen=True)
class Server:
    """A running server. ``generations`` names its processes: itself, its children, theirs, …"""

    name: str
    pid: int
    url: str
    generations: tuple[str, ...] = ()


class Size(NamedTuple):
    """The number of processes, and of threads in each."""

    workers: int
    threads: int


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def serving(
    name: str,
    command: Sequence[object],
    *,
    port: int,
    log: Path,
    environment: Mapping[str, str] | None = None,
    directory: Path = ROOT,
    generations: tuple[str, ...] = (),
) -> Iterator[Server]:
    """Runs the command in its own process group until the block ends."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=directory,
            env=dict(os.environ if environment is None else environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
    try:
        _wait_until_it_listens(name, process, port, log)
        yield Server(name, process.pid, f"http://{HOST}:{port}", generations)
    finally:
        _stop(process)


def _wait_until_it_listens(
    name: str, process: subprocess.Popen[bytes], port: int, log: Path
) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _listens(port):
        if process.poll() is not None or time.monotonic() > deadline:
            raise DidNotStartError(f"{name}: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.1)


def _listens(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1):
            return True
    except OSError:
        return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

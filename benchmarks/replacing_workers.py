"""Counts lost calls while web workers are replaced: `python benchmarks/replacing_workers.py`.

Eight clients call /healthz, each time on a new connection; each event happens five times in 25
seconds. Compares gunicorn's own threaded worker with SO_REUSEPORT to `core.server`.
"""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.life_cycle.processes import children_of
from tests.servers import free_port

ROOT = Path(__file__).resolve().parents[1]
EVENTS = 5
CALLERS = 8
PLAIN = """\
wsgi_app, worker_class, reuse_port = "config.wsgi:application", "gthread", True
workers, threads, keepalive, control_socket_disable = 2, 16, 5, True
bind = "127.0.0.1:{port}"
"""


def call(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/healthz", headers={"Connection": "close"})
        connection.getresponse().read()
    finally:
        connection.close()


class Tally:
    def __init__(self) -> None:
        self.answered = 0
        self.slowest_seconds = 0.0
        self.lost: Counter[str] = Counter()

    def call_until(self, is_over: threading.Event, port: int) -> None:
        while not is_over.is_set():
            started = time.monotonic()
            try:
                call(port)
                self.answered += 1
            except (OSError, http.client.HTTPException) as error:
                self.lost[type(error).__name__] += 1
            self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - started)


def provoke(event: str, parent: int) -> None:
    workers = children_of(parent)
    if event == "SIGHUP":
        os.kill(parent, signal.SIGHUP)
    elif workers:
        os.kill(min(workers), signal.SIGTERM if event == "SIGTERM" else signal.SIGKILL)


def measure(event: str, parent: int, port: int) -> Tally:
    tally, is_over = Tally(), threading.Event()
    threads = [
        threading.Thread(target=tally.call_until, args=(is_over, port)) for _ in range(CALLERS)
    ]
    for thread in threads:
        thread.start()
    for _ in range(EVENTS):
        time.sleep(1)
        provoke(event, parent)
        time.sleep(4)
    is_over.set()
    for thread in threads:
        thread.join()
    return tally


def run(name: str, command: list[str], port: int, data_dir: str) -> None:
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "MOONHOOK_DATA_DIR": data_dir,
        "PORT": str(port),
    }
    server = subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        time.sleep(10)
        call(port)
        for event in ("SIGHUP", "SIGTERM", "SIGKILL"):
            tally = measure(event, server.pid, port)
            lost = dict(tally.lost) or 0
            print(
                f"{name}, {event}: answered {tally.answered}, lost {lost}, "
                f"slowest {tally.slowest_seconds:.1f} s",
                flush=True,
            )
    finally:
        server.terminate()
        server.wait(60)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        plain = Path(directory, "plain.conf.py")
        port = free_port()
        plain.write_text(PLAIN.format(port=port))
        run("gthread with reuse_port", ["gunicorn", "-c", str(plain)], port, directory)
        run("core.server", ["tests.web_server"], free_port(), directory)


if __name__ == "__main__":
    main()

"""Measures memory over many calls to a real server: `python benchmarks/soak.py [CALLS]`.

Web workers are not replaced (WEB_MAX_REQUESTS=0). One call in a hundred sends 100 KB. Prints the
sum of resident sizes in MB for each kind of process.
"""

from __future__ import annotations

import http.client
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.life_cycle.hooks import hook_of
from tests.life_cycle.processes import children_of, web_server
from tests.moonhook_server import MoonhookServer

CALLS = 50_000
CALLERS = 8
WARM_UP_CALLS = 1_000
SAMPLES = 10
SCRIPT = """
local order = FromJson(params.get("body"))
local total = 0
for _, item in ipairs(order.items) do
  total = total + item.price * item.count
end
print("order", order.id, total)
return {id = order.id, total = total}
"""
ITEM = {"sku": "A-1", "price": 12.5, "count": 2}
SMALL = json.dumps({"id": 1, "items": [ITEM] * 3}).encode()
LARGE = json.dumps({"id": 2, "items": [ITEM] * 2_200}).encode()
KINDS = ("parent", "workers", "fork servers", "sandboxes")


class Callers:
    """Threads that call the hook over kept connections, up to a total number of calls."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self._numbers = count(1)
        self.failures: list[str] = []

    def call(self, up_to: int, progress: Callable[[int], None]) -> None:
        threads = [
            threading.Thread(target=self._call_on, args=(up_to, progress)) for _ in range(CALLERS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _call_on(self, up_to: int, progress: Callable[[int], None]) -> None:
        connection = http.client.HTTPConnection(
            self._url.hostname or "", self._url.port, timeout=60
        )
        while (number := next(self._numbers)) <= up_to:
            connection.request("POST", self._url.path, LARGE if number % 100 == 0 else SMALL)
            response = connection.getresponse()
            body = response.read()
            if response.status != 200:
                self.failures.append(f"{response.status} {body[:100]!r}")
            progress(number)
        connection.close()


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def sizes(server: MoonhookServer) -> Iterator[float]:
    parent = web_server(server)
    workers = children_of(parent)
    fork_servers = [pid for worker in workers for pid in children_of_all_threads(worker)]
    sandboxes = [pid for fork_server in fork_servers for pid in children_of(fork_server)]
    for pids in ([parent], workers, fork_servers, sandboxes):
        yield sum(resident_mb(pid) for pid in pids)


def children_of_all_threads(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else CALLS
    with tempfile.TemporaryDirectory() as directory:
        server = MoonhookServer(Path(directory), "web", WEB_MAX_REQUESTS="0", LOG_LEVEL="WARNING")
        with server.running():
            callers = Callers(hook_of(server, SCRIPT))
            Callers(hook_of(server, SCRIPT, "Warm-up")).call(WARM_UP_CALLS, lambda _: None)
            print(f"| calls | {' | '.join(KINDS)} | calls a second |")
            print("| --: " * (len(KINDS) + 2) + "|")
            started = time.monotonic()

            def sample(number: int) -> None:
                if number % (calls // SAMPLES) == 0 or number == 1:
                    figures = " | ".join(f"{size:.1f}" for size in sizes(server))
                    rate = number / (time.monotonic() - started)
                    print(f"| {number:,} | {figures} | {rate:.0f} |", flush=True)

            callers.call(calls, sample)
    print(f"\nfailures: {len(callers.failures)} {callers.failures[:3]}")


if __name__ == "__main__":
    main()

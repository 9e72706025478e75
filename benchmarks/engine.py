"""Measures the cost of a run: `python benchmarks/engine.py [--soak]`.

The floor is the same Lua state in this process: created, loaded with the prelude, run once,
dropped. "Paced" runs leave the child time to prepare its next state, like single calls; "back to
back" runs do not. The total cost of a run is the CPU time of both processes, which is what matters
when all cores are busy.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts_engine.sandbox import Job, Limits, SandboxPool
from scripts_engine.sandbox.child.operations import Operations
from scripts_engine.sandbox.child.runtime import LuaState, compile_prelude, lua54
from scripts_engine.sandbox.protocol import LogArea, create_area_file

ORDER_SCRIPT = b"""
local order = FromJson(params.get("body"))
local total = 0
for _, item in ipairs(order.items) do
  total = total + item.price * item.count
end
print("order", order.id, total)
return {id = order.id, total = total, ok = true}
"""
ORDER = {
    "id": 4711,
    "customer": {"name": "Ada Lovelace", "email": "ada@example.com", "city": "London"},
    "items": [
        {"sku": "A-1", "price": 12.5, "count": 2},
        {"sku": "B-2", "price": 3.75, "count": 10},
        {"sku": "C-3", "price": 100, "count": 1},
    ],
    "note": 'please ring "twice"',
    "paid": True,
}
OUT_OF_MEMORY = b"local t = {} while true do t[#t + 1] = ('x'):rep(1e5) .. #t end"


class InProcess:
    """The floor: a state and its run in this process."""

    def __init__(self) -> None:
        log_file = create_area_file()
        self.prelude = compile_prelude()
        area = LogArea(log_file)
        self.operations = Operations(
            area, lambda _name, _arguments: None, self.prelude.later, lambda _key: b""
        )
        self.limits = Limits().as_run_arguments()

    def run(self, source: bytes, body: bytes) -> Any:
        state = LuaState(self.prelude, self.operations.serve, 2**26)
        self.operations.start_run({b"body": body}, [])
        answer = state.run(source, b"bench", b"", False, *self.limits)
        assert answer[0] == b"succeeded", answer
        return answer


def microseconds(action: Callable[[], Any], repeat: int, pause: float = 0) -> list[float]:
    for _ in range(max(3, repeat // 20)):
        action()
    taken = []
    for _ in range(repeat):
        if pause:
            time.sleep(pause)
        started = time.perf_counter()
        action()
        taken.append((time.perf_counter() - started) * 1e6)
    return sorted(taken)


def show(name: str, taken: list[float]) -> float:
    median = statistics.median(taken)
    print(f"{name:<44} {median:>10.0f} {taken[int(len(taken) * 0.99)]:>10.0f}  µs")
    return median


def runs() -> None:
    body = json.dumps(ORDER).encode()
    floor, pool = InProcess(), SandboxPool()
    job = Job(source=ORDER_SCRIPT, chunk_name="bench", params={"body": body})
    print(f"\n{f'order script, {len(body)} B of JSON':<44} {'median':>10} {'p99':>10}")
    lowest = show("in-process floor", microseconds(lambda: floor.run(ORDER_SCRIPT, body), 3000))
    back = show("pool, back to back", microseconds(lambda: pool.run("acme", job), 3000))
    paced = show("pool, paced", microseconds(lambda: pool.run("acme", job), 1000, pause=0.002))
    tenants = iter(range(10**9))
    show(
        "pool, tenant change (eviction and new child)",
        microseconds(lambda: pool.run(f"tenant-{next(tenants)}", job), 200),
    )
    pool.close()
    print(f"back to back / floor {back / lowest:.2f}   paced / floor {paced / lowest:.2f}")


def processor_time() -> None:
    """The minimum over several rounds, which is closest to a quiet machine."""
    runs_per_round = 300
    pool = SandboxPool(runs_per_child=10**9)
    body = json.dumps(ORDER).encode()
    job = Job(source=ORDER_SCRIPT, chunk_name="bench", params={"body": body})
    in_child, in_worker = [], []
    for _ in range(20):
        started = time.process_time()
        used = sum(pool.run("acme", job).cpu_seconds for _ in range(runs_per_round))
        in_child.append(used / runs_per_round * 1e6)
        in_worker.append((time.process_time() - started) / runs_per_round * 1e6)
    pool.close()
    print(f"\n{'CPU time of a run':<44} {'median':>10} {'least':>10}")
    for name, taken in (("child", in_child), ("worker", in_worker)):
        print(f"{name:<44} {statistics.median(taken):>10.0f} {min(taken):>10.0f}  µs")


def documents() -> dict[str, Any]:
    return {"300 B": ORDER, "30 KB": [ORDER] * 88, "1 MB": [ORDER] * 3040}


def decode_in_python(lua: Any) -> Callable[[bytes], Any]:
    """The alternative JSON reader: Python parses, then builds the Lua tables one by one."""

    def convert(value: Any) -> Any:
        if isinstance(value, dict):
            table = lua.table()
            for key, item in value.items():
                table[key.encode()] = convert(item)
            return table
        if isinstance(value, list):
            table = lua.table()
            for index, item in enumerate(value, 1):
                table[index] = convert(item)
            return table
        return value.encode() if isinstance(value, str) else value

    return lambda text: convert(json.loads(text))


def json_in_lua_and_in_python() -> None:
    print(f"\n{'JSON, inside the state':<44} {'median':>10} {'p99':>10}")
    floor = InProcess()
    for name, value in documents().items():
        text = json.dumps(value).encode()
        repeat = 300 if len(text) < 100_000 else 10
        source = (
            b"local text, n, a = params.get('body'), %d, os.clock()\n"
            b"local value\nfor _ = 1, n do value = FromJson(text) end\n"
            b"local b = os.clock()\nfor _ = 1, n do text = ToJson(value) end\n"
            b"return Reply{headers = {D = (b - a) / n, E = (os.clock() - b) / n}}"
        ) % max(1, 30_000 // len(text))
        taken = []
        for _ in range(10):
            answer = floor.run(source, text)
            taken.append((float(answer[4]) * 1e6, float(answer[6]) * 1e6))
        show(f"FromJson in Lua, {name} ({len(text)} bytes)", sorted(d for d, _ in taken))
        show(f"ToJson in Lua, {name}", sorted(e for _, e in taken))
        lua = lua54.LuaRuntime(encoding=None, max_memory=2**28)
        decode = decode_in_python(lua)
        show(f"decoding in Python, {name}", microseconds(partial(decode, text), repeat))


def soak(count: int) -> None:
    """Measures the memory of one long-lived child with scripts that run out of memory."""
    print(f"\nsoak: {count} runs, one in 500 out of memory, no recycling by count")
    pool = SandboxPool(runs_per_child=10**9)
    job = Job(source=ORDER_SCRIPT, chunk_name="soak", params={"body": json.dumps(ORDER).encode()})
    caught = Job(
        source=b"pcall(function() " + OUT_OF_MEMORY + b" end) return 'survived'", chunk_name="soak"
    )
    for number in range(1, count + 1):
        chosen = caught if number % 500 == 250 else job
        assert pool.run("acme", chosen).kind == "succeeded"
        if number % (count // 5) == 0:
            child = Path(f"/proc/{pool.fork_server_pid()}/task/{pool.fork_server_pid()}/children")
            pid = child.read_text().split()[0]
            fields = Path(f"/proc/{pid}/status").read_text().splitlines()
            memory = next(line.split()[1] for line in fields if line.startswith("VmRSS"))
            print(f"{number:>8} runs: child {memory} kB, {pool.stats().spawned} spawned")
    pool.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--soak", action="store_true", help="20,000 runs, memory shown")
    options = parser.parse_args()
    runs()
    processor_time()
    json_in_lua_and_in_python()
    if options.soak:
        soak(20_000)


if __name__ == "__main__":
    main()

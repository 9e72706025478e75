"""A run that uses much CPU time gets a lower priority than quick runs."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

from scripts_engine.sandbox.parent.child_process import LOWEST_PRIORITY
from scripts_engine.sandbox.parent.conversation import LONG_RUN_CPU_SECONDS

from .conftest import run_in
from .processes import children_of, wait_until

ENDLESS = "while true do end"
IN_SMALL_PARTS = """
    for part = 1, 20 do
        local ends = os.clock() + 0.005
        while os.clock() < ends do end
        secrets.get("part")
    end
    return "done"
"""


def priorities_of(pool):
    pids = children_of(pool.fork_server_pid())
    return sorted(os.getpriority(os.PRIO_PROCESS, pid) for pid in pids)


def own_priority():
    return os.getpriority(os.PRIO_PROCESS, 0)


def test_an_endless_run_gets_the_lowest_priority_and_other_runs_do_not(new_pool):
    pool = new_pool()
    run_in(pool, "return 1", tenant="quick")
    with ThreadPoolExecutor(1) as executor:
        endless = executor.submit(run_in, pool, ENDLESS, tenant="endless")
        wait_until(lambda: LOWEST_PRIORITY in priorities_of(pool) or endless.done())
        run_in(pool, "return 1", tenant="quick")
        priorities = priorities_of(pool)
        for pid in children_of(pool.fork_server_pid()):
            if os.getpriority(os.PRIO_PROCESS, pid) == LOWEST_PRIORITY:
                os.kill(pid, signal.SIGKILL)
        endless.result()
    assert priorities == [own_priority(), LOWEST_PRIORITY]
    run_in(pool, "return 1", tenant="endless")
    assert priorities_of(pool) == [own_priority()] * 2


def test_a_long_run_with_host_calls_gets_the_lowest_priority(new_pool):
    pool = new_pool()

    assert run_in(pool, IN_SMALL_PARTS, host=lambda *_, **__: "x").reply.body == b"done"

    assert priorities_of(pool) == [LOWEST_PRIORITY]


def test_a_run_that_waits_for_its_host_keeps_its_priority(new_pool):
    pool = new_pool()
    never = threading.Event()

    def host(*_, **__):
        never.wait(0.1)

    run_in(pool, 'secrets.get("a") secrets.get("b") return 1', host=host)

    assert priorities_of(pool) == [own_priority()]


def test_many_quick_runs_do_not_add_up_to_a_long_one(new_pool):
    pool = new_pool()
    used = sum(run_in(pool, "for i = 1, 1e5 do end return 1").cpu_seconds for _ in range(100))

    assert used > LONG_RUN_CPU_SECONDS
    assert priorities_of(pool) == [own_priority()]
    assert pool.stats().spawned == 1

"""The children of a pool: started, kept warm, evicted and replaced."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scripts_engine.sandbox.child.serving import RUNS_PER_STATE
from scripts_engine.sandbox.limits import Limits
from scripts_engine.sandbox.parent.pool import SPAWNS_AT_ONCE

from .conftest import run_in, run_until_kept
from .processes import children_of, is_running, resident_kilobytes, wait_until

REMEMBER = "local old = seen or 'fresh'\nseen = 'seen'\nreturn old"
SLOW = "while true do end"


def test_a_tenant_keeps_its_child(new_pool):
    pool = new_pool()
    for _ in range(10):
        run_in(pool, "return 1")
    assert (pool.stats().spawned, pool.stats().children, pool.stats().idle) == (1, 1, 1)


def test_a_warm_child_serves_while_many_tenants_wait_for_new_ones(new_pool):
    pool = new_pool(size=4, queue_seconds=20)
    run_in(pool, "return 1", tenant="warm")
    server = pool.fork_server_pid()
    os.kill(server, signal.SIGSTOP)
    with ThreadPoolExecutor(8) as executor:
        cold = [executor.submit(run_in, pool, "return 1", tenant=f"t{n}") for n in range(8)]
        try:
            wait_until(lambda: pool.stats().busy + pool.stats().waiting == 8)
            busy = pool.stats().busy
            warm = run_in(pool, "return 1", tenant="warm")
        finally:
            os.kill(server, signal.SIGCONT)
        outcomes = [each.result() for each in cold]

    assert busy == SPAWNS_AT_ONCE
    assert [each.kind for each in (warm, *outcomes)] == ["succeeded"] * 9
    assert pool.stats().spawned == 9


def test_tenants_that_call_once_do_not_evict_one_that_calls_again(new_pool):
    pool = new_pool(size=1, processes=4)
    for _ in range(2):
        run_in(pool, "return 1", tenant="regular")
    for number in range(8):
        run_in(pool, "return 1", tenant=f"once-{number}")
    run_in(pool, "return 1", tenant="regular")
    assert (pool.stats().spawned, pool.stats().evicted) == (9, 5)


def test_tenants_that_called_again_keep_at_most_half_of_the_places(new_pool):
    pool = new_pool(size=1, processes=4)
    for tenant in ("a", "b", "c", "d"):
        for _ in range(2):
            run_in(pool, "return 1", tenant=tenant)
    for tenant in ("new", "other", "new", "other", "c", "d"):
        run_in(pool, "return 1", tenant=tenant)
    assert (pool.stats().spawned, pool.stats().evicted) == (6, 2)


def test_nothing_is_started_before_the_first_run(new_pool):
    assert new_pool().stats().fork_servers == 0


def test_every_run_has_a_fresh_state(new_pool):
    pool = new_pool()
    assert [run_in(pool, REMEMBER).reply.body for _ in range(3)] == [b"fresh"] * 3
    assert pool.stats().spawned == 1


def test_small_runs_that_succeed_follow_each_other_in_one_state(new_pool):
    pool = new_pool(size=1)
    first = run_until_kept(pool, "return 1")
    assert run_until_kept(pool, "return 1") == first + 1


@pytest.mark.parametrize(
    "last",
    [
        {"source": "error('boom')"},
        {"source": "syntax error"},
        {"source": "return nil, 'failed'"},
        {"source": "return ('x'):rep(2e6)"},
        {"source": "for i = 1, 1e7 do end"},
        {"source": "hoard = ('x'):rep(1.5e6)"},
        {"source": "return 1", "trace_lines": True},
    ],
    ids=lambda last: f"{last}",
)
def test_a_new_state_follows_any_other_run(new_pool, last):
    pool = new_pool(size=1)
    run_until_kept(pool, "return 1")
    run_in(pool, **last)
    assert pool.count_runs_of_state("acme") == 0
    assert pool.stats().spawned == 1


def test_a_new_state_follows_a_syntax_check_and_a_listing(new_pool):
    pool = new_pool(size=1)
    run_until_kept(pool, "return 1")
    pool.check_syntax("acme", b"return 1", "demo")
    after_check = pool.count_runs_of_state("acme")
    run_until_kept(pool, "return 1")
    pool.list_globals("acme", b"return 1")
    assert (after_check, pool.count_runs_of_state("acme")) == (0, 0)


def test_a_state_is_replaced_after_many_runs(new_pool):
    pool = new_pool(size=1)
    served = set()
    for _ in range(RUNS_PER_STATE + 1):
        run_in(pool, "return 1")
        served.add(pool.count_runs_of_state("acme"))
    assert max(served) < RUNS_PER_STATE


def test_tenants_never_share_a_child(new_pool):
    pool = new_pool()
    for tenant in ("acme", "globex", "initech"):
        run_in(pool, "return 1", tenant=tenant)
    stats = pool.stats()
    assert (stats.spawned, stats.children, stats.evicted) == (3, 3, 0)


def test_the_least_recently_used_child_is_evicted(new_pool):
    pool = new_pool(size=2)
    for tenant in ("acme", "globex", "acme", "initech"):
        run_in(pool, "return 1", tenant=tenant)
    assert (pool.stats().children, pool.stats().evicted) == (2, 1)
    run_in(pool, "return 1", tenant="acme")
    assert pool.stats().spawned == 3
    run_in(pool, "return 1", tenant="globex")
    assert pool.stats().spawned == 4


def test_more_tenants_than_slots_keep_their_children(new_pool):
    pool = new_pool(size=2, processes=3)
    for tenant in ("acme", "globex", "initech") * 3:
        run_in(pool, "return 1", tenant=tenant)
    assert (pool.stats().spawned, pool.stats().children, pool.stats().idle) == (3, 3, 3)
    run_in(pool, "return 1", tenant="umbrella")
    assert (pool.stats().spawned, pool.stats().children, pool.stats().evicted) == (4, 3, 1)


def test_a_child_that_no_tenant_uses_ends_with_a_later_run(new_pool):
    pool = new_pool(processes=20, idle_seconds=0)
    for number in range(3):
        run_in(pool, "return 1", tenant=f"t{number}")
    stats = pool.stats()
    assert (stats.spawned, stats.children, stats.expired, stats.evicted) == (3, 0, 3, 0)
    wait_until(lambda: not children_of(pool.fork_server_pid()))


def test_a_child_in_use_does_not_expire(new_pool):
    pool = new_pool(processes=20, idle_seconds=3600)
    for number in range(3):
        run_in(pool, "return 1", tenant=f"t{number}")
    assert (pool.stats().children, pool.stats().expired) == (3, 0)


# The last script collects its garbage before it ends.
@pytest.mark.parametrize(
    "hoard",
    [
        "local t = {} for i = 1, 400000 do t[i] = {i} end",
        "local t = {} for i = 1, 300000 do t[i] = 'abc' .. i end",
        "do local t = {} for i = 1, 400000 do t[i] = {} end end for i = 1, 3e6 do local x = {} end",
    ],
)
def test_an_idle_child_returns_the_memory_of_a_run(new_pool, hoard):
    pool = new_pool(size=1)
    run_in(pool, "return 1")
    [child] = children_of(pool.fork_server_pid())
    before = resident_kilobytes(child)
    assert run_in(pool, f"{hoard} return 'done'").reply.body == b"done"
    wait_until(lambda: resident_kilobytes(child) < before + 8 * 1024)
    assert pool.stats().spawned == 1


def test_a_child_is_replaced_after_its_last_run(new_pool):
    pool = new_pool(runs_per_child=3)
    for _ in range(7):
        assert run_in(pool, "return 1").kind == "succeeded"
    stats = pool.stats()
    assert (stats.spawned, stats.recycled, stats.killed) == (3, 2, 0)


def test_a_child_is_replaced_after_it_ran_out_of_time(new_pool):
    pool = new_pool()
    run_in(pool, SLOW, limits=Limits(wall_seconds=0.1))
    assert (pool.stats().children, pool.stats().killed) == (0, 1)
    assert run_in(pool, "return 1").kind == "succeeded"


def test_a_child_is_replaced_after_it_ran_out_of_memory(new_pool):
    pool = new_pool()
    run_in(pool, "return ('x'):rep(1e9)")
    assert (pool.stats().children, pool.stats().recycled) == (0, 1)


def test_a_child_survives_a_failed_script(new_pool):
    pool = new_pool()
    run_in(pool, "error('boom')")
    run_in(pool, "syntax error")
    run_in(pool, "return 1")
    assert pool.stats().spawned == 1


def test_an_idle_child_that_was_killed_is_replaced(new_pool):
    pool = new_pool()
    run_in(pool, "return 1")
    (child,) = children_of(pool.fork_server_pid())
    os.kill(child, 9)
    wait_until(lambda: not children_of(pool.fork_server_pid()))
    assert run_in(pool, "return 2").reply.body == b"2"


def test_a_killed_fork_server_is_started_again(new_pool):
    pool = new_pool()
    run_in(pool, "return 1")
    first = pool.fork_server_pid()
    (child,) = children_of(first)
    os.kill(first, 9)
    wait_until(lambda: not is_running(child))
    assert [run_in(pool, "return 2", tenant=t).reply.body for t in ("acme", "globex")] == [b"2"] * 2
    assert pool.stats().fork_servers == 2
    assert pool.fork_server_pid() != first


def test_every_child_is_under_the_filter(new_pool):
    pool = new_pool()
    for tenant in ("acme", "globex"):
        run_in(pool, "return 1", tenant=tenant)
    children = children_of(pool.fork_server_pid())
    assert len(children) == 2
    for child in children:
        status = Path(f"/proc/{child}/status").read_text()
        assert "Seccomp:\t2\n" in status
        assert "NoNewPrivs:\t1\n" in status

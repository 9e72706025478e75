"""The pool: its children, tenants and slots."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scripts_engine.sandbox.child import lockdown
from scripts_engine.sandbox.limits import MAX_WALL_SECONDS, Limits
from scripts_engine.sandbox.parent.pool import SPAWNS_AT_ONCE, SandboxBusy, SandboxUnavailable

from .conftest import held_slots, run_in
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


def test_more_processes_do_not_let_more_scripts_run_at_once(new_pool):
    pool = new_pool(size=1, processes=4, queue_seconds=0.05)
    with held_slots(pool, ["acme"]), pytest.raises(SandboxBusy):
        run_in(pool, "return 1", tenant="globex")


def test_fewer_processes_than_slots_are_refused(new_pool):
    with pytest.raises(ValueError, match="a process for each slot"):
        new_pool(size=2, processes=1)


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
    (child,) = children_of(fork_server_of(pool))
    os.kill(child, 9)
    wait_until(lambda: not children_of(fork_server_of(pool)))
    assert run_in(pool, "return 2").reply.body == b"2"


def test_a_run_whose_child_is_killed_fails_and_is_not_retried(new_pool):
    pool = new_pool()
    calls = []

    def kill_the_child(name, args, *, deadline):
        calls.append(name)
        (child,) = children_of(fork_server_of(pool))
        os.kill(child, 9)
        return 1

    outcome = run_in(pool, "store.increment('k')\nreturn 'ok'", host=kill_the_child)
    assert outcome.kind == "failed"
    assert outcome.error.message == "the sandbox process was ended from outside"
    assert calls == ["store.increment"]
    assert run_in(pool, "return 2").reply.body == b"2"


def test_a_killed_fork_server_is_started_again(new_pool):
    pool = new_pool()
    run_in(pool, "return 1")
    first = fork_server_of(pool)
    (child,) = children_of(first)
    os.kill(first, 9)
    wait_until(lambda: not is_running(child))
    assert [run_in(pool, "return 2", tenant=t).reply.body for t in ("acme", "globex")] == [b"2"] * 2
    assert pool.stats().fork_servers == 2
    assert fork_server_of(pool) != first


def test_many_threads_and_tenants_get_their_own_answers(new_pool):
    pool = new_pool(size=4, tenant_share=2, queue_seconds=30, queue_size=32)

    def echo(number):
        body = str(number).encode()
        source = "return params.get('body')"
        return run_in(pool, source, tenant=f"tenant-{number % 5}", params={"body": body}).reply.body

    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(echo, range(600)))
    assert answers == [str(number).encode() for number in range(600)]
    assert pool.stats().busy == 0
    assert pool.stats().children <= 4


def test_a_tenant_at_its_share_is_busy_and_others_run(new_pool):
    pool = new_pool(size=4, queue_seconds=0.05)
    with held_slots(pool, ["acme", "acme"]):
        with pytest.raises(SandboxBusy) as busy:
            run_in(pool, "return 1", tenant="acme")
        assert busy.value.retry_after >= 1
        assert run_in(pool, "return 1", tenant="globex").kind == "succeeded"
    assert run_in(pool, "return 1", tenant="acme").kind == "succeeded"


def test_all_slots_taken_is_busy(new_pool):
    pool = new_pool(size=2, queue_seconds=0.05)
    with held_slots(pool, ["acme", "globex"]):
        with pytest.raises(SandboxBusy):
            run_in(pool, "return 1", tenant="initech")
        with pytest.raises(SandboxBusy):
            pool.check_syntax("initech", b"return 1", "demo")
        assert pool.stats().waiting == 0


def test_a_tenant_whose_share_of_the_queue_waits_is_refused_at_once(new_pool):
    pool = new_pool(size=2, queue_size=2, queue_seconds=60)
    with ThreadPoolExecutor(1) as executor:
        with held_slots(pool, ["acme"]):
            waiting = executor.submit(run_in, pool, "return 1", tenant="acme")
            wait_until(lambda: pool.stats().waiting == 1)
            with pytest.raises(SandboxBusy):
                run_in(pool, "return 1", tenant="acme")
            assert pool.stats().waiting == 1
            assert run_in(pool, "return 1", tenant="globex").kind == "succeeded"
        assert waiting.result().kind == "succeeded"


def test_a_refusal_estimates_when_a_slot_is_free(new_pool):
    pool = new_pool(size=1, queue_seconds=0)
    limits = Limits(wall_seconds=MAX_WALL_SECONDS)
    with held_slots(pool, ["acme"]), pytest.raises(SandboxBusy) as before_any_has_ended:
        run_in(pool, "return 1", tenant="acme", limits=limits)
    with held_slots(pool, ["acme"]), pytest.raises(SandboxBusy) as at_the_mean:
        run_in(pool, "return 1", tenant="acme", limits=limits)
    assert before_any_has_ended.value.retry_after == MAX_WALL_SECONDS
    assert 1 <= at_the_mean.value.retry_after < MAX_WALL_SECONDS


def test_waiting_for_a_slot_is_not_counted_as_running(new_pool):
    pool = new_pool(size=2, queue_seconds=20)
    limits = Limits(wall_seconds=1)
    with ThreadPoolExecutor(1) as executor:
        with held_slots(pool, ["acme"]):
            waiting = executor.submit(run_in, pool, "return 1", tenant="acme", limits=limits)
            wait_until(lambda: pool.stats().waiting == 1)
            time.sleep(limits.wall_seconds)
        outcome = waiting.result()
    assert outcome.kind == "succeeded"
    assert outcome.queue_seconds >= limits.wall_seconds
    assert outcome.duration_seconds < limits.wall_seconds


def test_a_tenants_share_is_half_of_the_slots_but_at_least_one(new_pool):
    assert new_pool(size=1).stats().tenant_share == 1
    assert new_pool(size=8).stats().tenant_share == 4
    assert new_pool(size=8, tenant_share=2).stats().tenant_share == 2


def test_every_child_is_under_the_filter(new_pool):
    pool = new_pool()
    for tenant in ("acme", "globex"):
        run_in(pool, "return 1", tenant=tenant)
    children = children_of(pool.fork_server_pid())
    assert len(children) == 2
    for child in children:
        status = Path(f"/proc/{child}/status").read_text()
        assert ("Seccomp:\t2\n" in status) == (lockdown.pyseccomp is not None)
        assert "NoNewPrivs:\t1\n" in status


def test_a_full_pool_refuses_once_it_is_closed(new_pool):
    pool = new_pool(size=1)
    run_in(pool, "return 1")
    pool.close()
    with pytest.raises(SandboxUnavailable, match="closed"):
        run_in(pool, "return 1", tenant="globex")


def test_a_closed_pool_ends_its_processes_and_refuses(new_pool):
    pool = new_pool()
    run_in(pool, "return 1")
    server = fork_server_of(pool)
    pool.close()
    assert not children_of(os.getpid()) & {server}
    with pytest.raises(SandboxUnavailable):
        run_in(pool, "return 1")


def test_a_forked_copy_of_the_process_has_processes_of_its_own(new_pool):
    pool = new_pool()
    run_in(pool, "return 1")
    server = fork_server_of(pool)
    read, write = os.pipe()
    copy = os.fork()
    if copy == 0:
        body = run_in(pool, REMEMBER).reply.body
        os.write(write, body + b" %d" % (fork_server_of(pool) != server))
        pool.close()
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"fresh 1"
    os.waitpid(copy, 0)
    assert run_in(pool, "return 1").kind == "succeeded"
    assert fork_server_of(pool) == server


def test_duration_and_cpu_time_are_measured(new_pool):
    pool = new_pool()
    before = time.time()
    outcome = run_in(pool, "local stop = os.clock() + 0.2\nwhile os.clock() < stop do end")
    assert outcome.duration_seconds >= 0.2
    assert outcome.cpu_seconds >= 0.2
    assert before - 1 < outcome.started_at < time.time()


def fork_server_of(pool):
    return pool.fork_server_pid()
